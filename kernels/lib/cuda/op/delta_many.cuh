// DeltaRule for many rows: delta_rule for sequences of few, then delta_prepare and delta_carry for the others.
#pragma once
#include "lib/cuda/op/delta_carry.cuh"
#include "lib/cuda/op/delta_prepare.cuh"
#include "lib/cuda/op/delta_rule.cuh"
