// The oracle's kernels, one function per op: plain loops in double, no tricks, no threads. table.cpp has a row for
// each.
#pragma once

#include "backends/host/call.h"

namespace rlx::reference {

using host::Call;
using host::IntReader;
using host::IntWriter;
using host::Reader;
using host::split_at;
using host::View;
using host::Writer;

void add(const Call& call);
void concat(const Call& call);
void div(const Call& call);
void expand(const Call& call);
void max(const Call& call);
void min(const Call& call);
void mul(const Call& call);
void narrow(const Call& call);
void pow(const Call& call);
void reshape(const Call& call);
void resize_nearest_2x(const Call& call);
void softmax(const Call& call);
void sub(const Call& call);
void transpose(const Call& call);

}  // namespace rlx::reference
