// PagedAttention for many rows: attention_tile, or attention_wgmma where there is wgmma. Beside sequences of one row
// attention_few or attention_shares with kMost 1 come before, and kLeast is 2.
#pragma once
#include "lib/cuda/op/attention_few.cuh"
#include "lib/cuda/op/attention_shares.cuh"
#include "lib/cuda/op/attention_tile.cuh"
#include "lib/cuda/op/attention_wgmma.cuh"
