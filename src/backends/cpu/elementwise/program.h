// An element-wise program: a list of step functions over blocks of lanes that stay in the first-level cache. Built of
// ops without allocating, so that a kernel builds it whenever it runs, and `supports` asks by building it.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "backends/cpu/elementwise/micro.h"
#include "rlx/op.h"

namespace rlx::cpu {

inline constexpr int kMaxProgramInputs = 24;
inline constexpr int kMaxProgramSteps = 128;
// Elements of a block, 2 KiB of f32: two operands, the next block of both on its way in, two that do not change and two
// slots fill half of a first-level cache of 32 KiB; at 1024 they would thrash it. A step's call costs a tenth of its
// work.
inline constexpr int64_t kBlock = 512;

struct ProgramStep {
  StepFn fn;
  Micro micro;
  std::array<int16_t, 3> operands;  // slots
  int16_t out;                      // slot
};

// Slots are blocks of lanes: first one per input, then temporaries; the result's slot is no other value's.
struct Program {
  int num_inputs = 0, num_steps = 0, num_slots = 0;
  int result = 0;  // slot; one of the inputs' if there are no steps
  int cost = 0;    // of an element, in additions
  bool has_i64 = false;
  DType result_dtype = DType::F32;
  std::array<DType, kMaxProgramInputs> inputs = {};
  std::array<ProgramStep, kMaxProgramSteps> steps;

  int64_t slot_bytes() const { return kBlock * (has_i64 ? 8 : 4); }
  // Working memory of one thread: the slots, and a block of elements on their way in or out.
  int64_t scratch_bytes() const { return (num_slots + 1) * slot_bytes(); }
};

class ProgramBuilder {
 public:
  explicit ProgramBuilder(Program& program) : program_(program) {}

  // Values are numbers; -1 is one that cannot be computed here, and whatever is computed of it is -1 too.
  int input(DType dtype);
  int apply(const OpDef& op, std::span<const int> operands, std::optional<DType> to = std::nullopt);
  int cast(int x, DType to);
  // One step function on values of its lanes; the result is a `dtype`.
  int step(Micro micro, std::span<const int> operands, DType dtype);
  // Assigns the slots. False when the value cannot be computed here.
  bool finish(int result);

 private:
  // `reg` counts inputs and steps; `pending` is the rounding or wrapping to its dtype, left out until somebody reads
  // it.
  struct Value {
    DType dtype;
    int16_t reg;
    Micro pending;
  };

  int add_value(DType dtype, int reg, Micro pending = Micro::kNone);
  int emit(Micro micro, std::span<const int> regs);
  int read(int value);  // its register, settled
  int where(std::span<const int> operands);
  void pair_steps();
  void assign_slots();

  Program& program_;
  std::array<Value, kMaxProgramInputs + kMaxProgramSteps> values_;
  int num_values_ = 0;
};

}  // namespace rlx::cpu
