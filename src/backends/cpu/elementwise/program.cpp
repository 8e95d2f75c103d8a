#include "backends/cpu/elementwise/program.h"

#include "rlx/ops/activation.h"
#include "rlx/ops/binary.h"
#include "rlx/ops/bitwise.h"
#include "rlx/ops/cast.h"
#include "rlx/ops/compare.h"
#include "rlx/ops/unary.h"
#include "rlx/ops/where.h"

namespace rlx::cpu {

namespace {

// What a result is: rounded or wrapped to the operands' dtype, one of its values already, or Bool.
enum class Kind { kRounded, kExact, kBool };

struct Row {
  const OpDef* op;
  Kind kind;
  Micro on_f32, on_i32 = Micro::kNone, on_i64 = Micro::kNone;
};

// Powers of integers are the oracle's.
const Row kRows[] = {
    {&ops::add, Kind::kRounded, Micro::kAddF, Micro::kAddI, Micro::kAddL},
    {&ops::mul, Kind::kRounded, Micro::kMulF, Micro::kMulI, Micro::kMulL},
    {&ops::sub, Kind::kRounded, Micro::kSubF, Micro::kSubI, Micro::kSubL},
    {&ops::div, Kind::kRounded, Micro::kDivF, Micro::kDivI, Micro::kDivL},
    {&ops::mod, Kind::kRounded, Micro::kModF, Micro::kModI, Micro::kModL},
    {&ops::fmod, Kind::kExact, Micro::kFmodF, Micro::kFmodI, Micro::kFmodL},
    {&ops::max, Kind::kExact, Micro::kMaxF, Micro::kMaxI, Micro::kMaxL},
    {&ops::min, Kind::kExact, Micro::kMinF, Micro::kMinI, Micro::kMinL},
    {&ops::pow, Kind::kRounded, Micro::kPowF},
    {&ops::relu, Kind::kExact, Micro::kReluF, Micro::kReluI, Micro::kReluL},
    {&ops::sigmoid, Kind::kRounded, Micro::kSigmoidF},
    {&ops::tanh, Kind::kRounded, Micro::kTanhF},
    {&ops::exp, Kind::kRounded, Micro::kExpF},
    {&ops::log, Kind::kRounded, Micro::kLogF},
    {&ops::sqrt, Kind::kRounded, Micro::kSqrtF},
    {&ops::rsqrt, Kind::kRounded, Micro::kRsqrtF},
    {&ops::neg, Kind::kRounded, Micro::kNegF, Micro::kNegI, Micro::kNegL},
    {&ops::abs, Kind::kRounded, Micro::kAbsF, Micro::kAbsI, Micro::kAbsL},
    {&ops::gelu, Kind::kRounded, Micro::kGeluF},
    {&ops::silu, Kind::kRounded, Micro::kSiluF},
    {&ops::gelu_approx, Kind::kRounded, Micro::kGeluApproxF},
    {&ops::round, Kind::kExact, Micro::kRoundF},
    {&ops::sin, Kind::kRounded, Micro::kSinF},
    {&ops::cos, Kind::kRounded, Micro::kCosF},
    {&ops::tan, Kind::kRounded, Micro::kTanF},
    {&ops::atan, Kind::kRounded, Micro::kAtanF},
    {&ops::erf, Kind::kRounded, Micro::kErfF},
    {&ops::floor, Kind::kExact, Micro::kFloorF},
    {&ops::ceil, Kind::kExact, Micro::kCeilF},
    {&ops::sign, Kind::kExact, Micro::kSignOrNaNF, Micro::kSignI, Micro::kSignL},
    {&ops::asin, Kind::kRounded, Micro::kAsinF},
    {&ops::acos, Kind::kRounded, Micro::kAcosF},
    {&ops::sinh, Kind::kRounded, Micro::kSinhF},
    {&ops::cosh, Kind::kRounded, Micro::kCoshF},
    {&ops::asinh, Kind::kRounded, Micro::kAsinhF},
    {&ops::acosh, Kind::kRounded, Micro::kAcoshF},
    {&ops::atanh, Kind::kRounded, Micro::kAtanhF},
    {&ops::is_nan, Kind::kBool, Micro::kIsNaNF},
    {&ops::bit_and, Kind::kExact, Micro::kNone, Micro::kAndI, Micro::kAndL},
    {&ops::bit_or, Kind::kExact, Micro::kNone, Micro::kOrI, Micro::kOrL},
    {&ops::bit_xor, Kind::kExact, Micro::kNone, Micro::kXorI, Micro::kXorL},
    {&ops::bit_not, Kind::kRounded, Micro::kNone, Micro::kNotI, Micro::kNotL},
    {&ops::shift_left, Kind::kRounded, Micro::kNone, Micro::kShiftLeftI, Micro::kShiftLeftL},
    {&ops::shift_right, Kind::kExact, Micro::kNone, Micro::kShiftRightI, Micro::kShiftRightL},
    {&ops::eq, Kind::kBool, Micro::kEqF, Micro::kEqI, Micro::kEqL},
    {&ops::ne, Kind::kBool, Micro::kNeF, Micro::kNeI, Micro::kNeL},
    {&ops::lt, Kind::kBool, Micro::kLtF, Micro::kLtI, Micro::kLtL},
    {&ops::le, Kind::kBool, Micro::kLeF, Micro::kLeI, Micro::kLeL},
    {&ops::gt, Kind::kBool, Micro::kGtF, Micro::kGtI, Micro::kGtL},
    {&ops::ge, Kind::kBool, Micro::kGeF, Micro::kGeI, Micro::kGeL},
};

// What makes lanes a value of a narrow dtype: a rounding, or the low bits.
Micro settle(DType dtype) {
  switch (dtype) {
    case DType::F16: return Micro::kToF16;
    case DType::BF16: return Micro::kToBF16;
    case DType::I16: return Micro::kWrapI16;
    case DType::I8: return Micro::kWrapI8;
    case DType::U8: return Micro::kWrapU8;
    case DType::U16: return Micro::kWrapU16;
    default: return Micro::kNone;
  }
}

Micro clamp(DType dtype) {
  switch (dtype) {
    case DType::I16: return Micro::kClampI16;
    case DType::I8: return Micro::kClampI8;
    case DType::U8: return Micro::kClampU8;
    case DType::U16: return Micro::kClampU16;
    default: return Micro::kNone;
  }
}

Micro is_true(Lane lane) {
  return lane == Lane::kF32 ? Micro::kIsTrueF : lane == Lane::kI32 ? Micro::kIsTrueI : Micro::kIsTrueL;
}

}  // namespace

int ProgramBuilder::add_value(DType dtype, int reg, Micro pending) {
  if (reg < 0 || lane_of(dtype) == Lane::kNone || num_values_ == static_cast<int>(values_.size())) return -1;
  program_.has_i64 |= dtype == DType::I64;
  values_[static_cast<size_t>(num_values_)] = {dtype, static_cast<int16_t>(reg), pending};
  return num_values_++;
}

int ProgramBuilder::input(DType dtype) {
  if (program_.num_inputs == kMaxProgramInputs || lane_of(dtype) == Lane::kNone) return -1;
  program_.inputs[static_cast<size_t>(program_.num_inputs)] = dtype;
  return add_value(dtype, program_.num_inputs++);
}

// Registers of steps follow all inputs that there may be.
int ProgramBuilder::emit(Micro micro, std::span<const int> regs) {
  if (program_.num_steps == kMaxProgramSteps) return -1;
  ProgramStep& s = program_.steps[static_cast<size_t>(program_.num_steps)];
  s.fn = step_fn(micro);
  s.micro = micro;
  RLX_ASSERT(s.fn != nullptr && regs.size() <= s.operands.size());
  for (size_t i = 0; i < s.operands.size(); ++i) s.operands[i] = static_cast<int16_t>(regs[i < regs.size() ? i : 0]);
  s.out = static_cast<int16_t>(kMaxProgramInputs + program_.num_steps);
  program_.cost += cost_of(micro);
  ++program_.num_steps;
  return s.out;
}

int ProgramBuilder::read(int value) {
  Value& v = values_[static_cast<size_t>(value)];
  if (v.pending != Micro::kNone) {
    const int from = v.reg, settled = emit(v.pending, {&from, 1});
    if (settled < 0) return -1;
    v.reg = static_cast<int16_t>(settled);
    v.pending = Micro::kNone;
  }
  return v.reg;
}

int ProgramBuilder::step(Micro micro, std::span<const int> operands, DType dtype) {
  int regs[3] = {};
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] < 0) return -1;
    regs[i] = read(operands[i]);
    if (regs[i] < 0) return -1;
  }
  return add_value(dtype, emit(micro, {regs, operands.size()}));
}

int ProgramBuilder::cast(int x, DType to) {
  if (x < 0) return -1;
  const DType from = values_[static_cast<size_t>(x)].dtype;
  const Lane a = lane_of(from), b = lane_of(to);
  if (from == to || b == Lane::kNone) return b == Lane::kNone ? -1 : x;
  const auto lanes_as = [&](Micro micro, DType dtype) { return step(micro, {&x, 1}, dtype); };
  if (to == DType::Bool) return lanes_as(is_true(a), to);
  if (a == b) {  // wider is the same lanes; narrower has to be settled
    const int reg = read(x);
    return add_value(to, reg, from == DType::Bool ? Micro::kNone : settle(to));
  }
  if (a == Lane::kF32) {
    if (b == Lane::kI64) return lanes_as(Micro::kFToL, to);
    const int saturated = lanes_as(Micro::kFToI, DType::I32);
    return clamp(to) == Micro::kNone ? saturated : step(clamp(to), {&saturated, 1}, to);
  }
  if (b == Lane::kI64) return lanes_as(Micro::kIToL, to);
  // From integers: lanes that still have to be rounded or wrapped, once.
  Micro convert = Micro::kLToI;
  if (b == Lane::kF32) {
    // F16 overflows where f32 begins to round. BF16 does not: I64 needs more than one sticky step.
    if (a == Lane::kI64 && to == DType::BF16) return -1;
    convert = a == Lane::kI64 ? Micro::kLToF : to == DType::BF16 && from == DType::I32 ? Micro::kIToFOdd : Micro::kIToF;
  }
  const int lanes = lanes_as(convert, b == Lane::kF32 ? DType::F32 : DType::I32);
  return lanes < 0 ? -1 : add_value(to, values_[static_cast<size_t>(lanes)].reg, settle(to));
}

int ProgramBuilder::where(std::span<const int> operands) {
  for (const int o : operands)
    if (o < 0) return -1;
  int chosen = operands[0];
  const Lane lane = lane_of(values_[static_cast<size_t>(chosen)].dtype);
  if (lane != Lane::kI32) chosen = step(is_true(lane), {&chosen, 1}, DType::Bool);
  const DType dtype = values_[static_cast<size_t>(operands[1])].dtype;
  const int all[] = {chosen, operands[1], operands[2]};
  return step(lane_of(dtype) == Lane::kI64 ? Micro::kWhereL : Micro::kWhere, all, dtype);
}

int ProgramBuilder::apply(const OpDef& op, std::span<const int> operands, std::optional<DType> to) {
  if (&op == &ops::cast) return cast(operands[0], *to);
  if (&op == &ops::where) return where(operands);
  if (operands[0] < 0) return -1;
  const DType dtype = values_[static_cast<size_t>(operands[0])].dtype;
  const Lane lane = lane_of(dtype);
  if (&op == &ops::bit_not && dtype == DType::Bool) return step(Micro::kIsFalseI, operands, dtype);
  for (const Row& row : kRows) {
    if (row.op != &op) continue;
    const Micro micro = lane == Lane::kF32 ? row.on_f32 : lane == Lane::kI32 ? row.on_i32 : row.on_i64;
    if (micro == Micro::kNone) return -1;
    const int y = step(micro, operands, row.kind == Kind::kBool ? DType::Bool : dtype);
    // neg and abs of floats are exact too; of the smallest integer they are not.
    const bool exact = row.kind != Kind::kRounded || micro == Micro::kNegF || micro == Micro::kAbsF;
    if (y >= 0 && !exact) values_[static_cast<size_t>(y)].pending = settle(dtype);
    return y;
  }
  return -1;
}

bool ProgramBuilder::finish(int result) {
  if (result < 0) return false;
  const Value& value = values_[static_cast<size_t>(result)];  // what is pending happens when it is stored
  program_.result_dtype = value.dtype;
  if (value.reg < kMaxProgramInputs) {
    program_.num_steps = 0;
    program_.result = value.reg;
    program_.num_slots = program_.num_inputs;
    return true;
  }
  program_.num_steps = value.reg - kMaxProgramInputs + 1;  // nothing behind it is read
  pair_steps();
  assign_slots();
  return true;
}

// A step that is read once, by a step that can do its work on the way, saves a pass over a block.
void ProgramBuilder::pair_steps() {
  const auto n = static_cast<size_t>(program_.num_steps);
  const auto index = [](int16_t reg) { return static_cast<size_t>(reg - kMaxProgramInputs); };
  std::array<int16_t, kMaxProgramSteps> reads = {}, renamed = {};
  std::array<bool, kMaxProgramSteps> gone = {};
  const auto arity = [](Micro m) { return pair_of(m, Micro::kReluF, false) != Micro::kNone ? 2 : 1; };
  for (size_t s = 0; s < n; ++s) {
    const auto& o = program_.steps[s].operands;
    for (size_t i = 0; i < o.size(); ++i)  // operands that a step lacks repeat its first
      if (o[i] >= kMaxProgramInputs && (i == 0 || o[i] != o[0])) ++reads[index(o[i])];
  }
  for (size_t s = 0; s < n; ++s) {
    ProgramStep& second = program_.steps[s];
    for (int side = 0; side < arity(second.micro); ++side) {
      const int16_t reg = second.operands[static_cast<size_t>(side)],
                    other = second.operands[1 - static_cast<size_t>(side)];
      if (reg < kMaxProgramInputs || reads[index(reg)] != 1 || (arity(second.micro) == 2 && reg == other)) continue;
      const ProgramStep& first = program_.steps[index(reg)];
      const Micro pair = pair_of(first.micro, second.micro, side == 1);
      if (pair == Micro::kNone) continue;
      gone[index(reg)] = true;
      second = {step_fn(pair),
                pair,
                {first.operands[0], first.operands[1], arity(second.micro) == 2 ? other : first.operands[2]},
                second.out};
      break;
    }
  }
  int kept = 0;
  for (size_t s = 0; s < n; ++s) {
    if (gone[s]) continue;
    ProgramStep& step = program_.steps[static_cast<size_t>(kept)];
    step = program_.steps[s];
    for (int16_t& o : step.operands)
      if (o >= kMaxProgramInputs) o = renamed[index(o)];
    renamed[s] = step.out = static_cast<int16_t>(kMaxProgramInputs + kept++);
  }
  program_.num_steps = kept;
}

// Each step's block goes where an earlier one's is not read any more, or to a new slot.
void ProgramBuilder::assign_slots() {
  std::array<int16_t, kMaxProgramSteps> last_use = {}, slot = {};
  for (int s = 0; s < program_.num_steps; ++s)
    for (const int16_t o : program_.steps[static_cast<size_t>(s)].operands)
      if (o >= kMaxProgramInputs) last_use[static_cast<size_t>(o - kMaxProgramInputs)] = static_cast<int16_t>(s);
  std::array<int16_t, kMaxProgramSteps> free = {};
  int num_free = 0, next = program_.num_inputs;
  for (int s = 0; s < program_.num_steps; ++s) {
    ProgramStep& step = program_.steps[static_cast<size_t>(s)];
    const std::array<int16_t, 3> regs = step.operands;
    for (size_t i = 0; i < regs.size(); ++i)
      if (regs[i] >= kMaxProgramInputs) step.operands[i] = slot[static_cast<size_t>(regs[i] - kMaxProgramInputs)];
    const bool is_result = s == program_.num_steps - 1;
    const auto take = [&] {
      step.out = static_cast<int16_t>(is_result || num_free == 0 ? next++ : free[static_cast<size_t>(--num_free)]);
    };
    // A step may write where it reads, but not where lanes differ in size.
    if (program_.has_i64) take();
    for (size_t i = 0; i < regs.size(); ++i) {
      const bool again = (i > 0 && regs[i] == regs[0]) || (i > 1 && regs[i] == regs[1]);
      if (regs[i] >= kMaxProgramInputs && !again && last_use[static_cast<size_t>(regs[i] - kMaxProgramInputs)] == s)
        free[static_cast<size_t>(num_free++)] = step.operands[i];
    }
    if (!program_.has_i64) take();
    slot[static_cast<size_t>(s)] = step.out;
  }
  program_.result = program_.steps[static_cast<size_t>(program_.num_steps - 1)].out;
  program_.num_slots = next;
}

}  // namespace rlx::cpu
