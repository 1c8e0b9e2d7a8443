// Sums of e4m3 products whose factors both lie in shared memory, for linear_e4m3_wide.cuh.
#pragma once
#include "lib/cuda/ptx/wgmma_e4m3.cuh"
#include "lib/cuda/weight/e4m3_rows.cuh"
#include "lib/cuda/weight/frag_wide.cuh"
#include "lib/cuda/weight/unit.cuh"

namespace atlas {

// A stage is 128·kParts columns: for each part kRows rows of codes in the 128-byte swizzle; for each 64 columns the codes of all
// strips in the 64-byte swizzle; for each part the scales of rows, for each those of strips; in a tile's last stage scales and biases of its
// outputs, and which tile it is; for each part the scales of each group of outputs, then whether strips of a group have several.
//
// kGroup: outputs that share a scale in checkpoints, 64 or 32.
template <int kRows, int kOut, int kStages, int kCluster, int kGroup = 64>
struct e4m3_shared_pipe : wide<2, 128, 128 / kRows * kOut * 128 + kOut / 64 * 1024, kStages, kCluster, true, true, 32> {
    static constexpr int kParts = 128 / kRows, kStrips = kOut / 16, kUnit = kOut * 64;  // kUnit: bytes of 64 columns
    static constexpr int kGroups = kOut / kGroup, kGroupStrips = kGroup / 16, kGroupBytes = 64 / kGroupStrips;
    static constexpr int kMixed = 12 / kGroupStrips;  // the word behind those of groups: whether scales differ in one
    using base = wide<2, 128, kParts * kOut * 128 + kOut / 64 * 1024, kStages, kCluster, true, true, 32>;
    // After the stages: sums that a part gives to the other, then 64 outputs of each warp's rows.
    static constexpr int kSumsBytes = kParts > 1 ? kOut * 256 : 0, kAll = base::kShared + kSumsBytes + 16384;
    static_assert(kAll <= 227 * 1024, "fits");

    __device__ static float *sums() { return reinterpret_cast<float *>(wide_shared + base::kShared); }
    __device__ static uint32_t outputs() { return uint32_t(__cvta_generic_to_shared(wide_shared)) + base::kShared + kSumsBytes + warp() * 2048; }
    __device__ static int part() { return kParts > 1 ? base::team() : 0; }
    __device__ static int row() { return warp() % (kRows / 16) * 16; }  // the first of a warp, in the tile
    __device__ uint32_t weights(int slot, int unit) const { return base::weights(slot) + unit * kUnit; }
    __device__ uint32_t row_scales(int slot, int part) const { return weights(slot, 2 * kParts) + part * kRows * 4; }
    __device__ uint32_t strip_scales(int slot, int part) const { return weights(slot, 2 * kParts) + 512 + part * 64; }
    __device__ uint32_t output_scales(int slot) const { return weights(slot, 2 * kParts) + 640; }
    __device__ uint32_t biases(int slot) const { return output_scales(slot) + kOut * 4; }
    __device__ uint32_t place(int slot) const { return biases(slot) + kOut * 4; }
    __device__ uint32_t group_scales(int slot, int part) const { return place(slot) + 16 + part * kGroupBytes; }
    static_assert(640 + kOut * 8 + 16 + kParts * kGroupBytes <= kOut / 64 * 1024, "scales fit");
};

// What a warpgroup sums: 64 rows by all outputs of its tiles, one after another. Tensor cores add with 14 bits or so: products of each 128
// columns, of whole rows of each 256, are summed by themselves, then added up, in blocks by fma with the product of
// both scales. Two sets of such sums take turns, so that products run, be they another tile's, while others are added and stored.
template <bool kBlocks, int kOut, typename Pipe, typename Stage>
struct e4m3_sums {
    static constexpr int kSums = kOut / 2, kGroups = Pipe::kGroups;

    Pipe pipe;
    Stage &now;
    uint32_t rows_at, weights_at, row_scales_at, strip_scales_at, group_scales_at;  // of this warpgroup in the first stage, scales of rows from the lane's on
    int left;                        // stages of the tile that are not begun
    int last;                        // the slot of the stage that was begun last
    float rows[2], groups[kGroups];  // in blocks the scales of a stage: of rows, and of each group of outputs
    bool mixed;                      // where those have several, by strips
    float total[kSums];

    // Addresses are held in uniform registers, since the compiler would make them anew for every stage while products wait.
    __device__ e4m3_sums(const Pipe &all, Stage &now) : pipe(all), now(now) {
        const auto keep = [](uint32_t x) { return __shfl_sync(kAllLanes, x, 0); };
        pipe.full = keep(pipe.full), pipe.empty = keep(pipe.empty);
        rows_at = keep(pipe.rows(0) + Pipe::team() * 8192), weights_at = keep(pipe.weights(0, 2 * Pipe::part()));
        strip_scales_at = keep(pipe.strip_scales(0, Pipe::part())), group_scales_at = keep(pipe.group_scales(0, Pipe::part()));
        row_scales_at = held(pipe.row_scales(0, Pipe::part()) + (Pipe::row() + lane() / 4) * 4);
    }

    __device__ void next_stage() {
        pipe.wait_full(now);
        last = now.slot, left--;
        now.next();
    }
    // Begins products of the stage that came last, from one of its strips of weights on.
    template <int kN>
    __device__ void begin(float (&c)[kN], int strip, bool adds) {
        const uint64_t rows = factor(rows_at + last * Pipe::kStageBytes), weights = factor_of_64(weights_at + last * Pipe::kStageBytes + strip * 1024);
        begin_products();
#pragma unroll
        for (int k = 0; k < 4; k++) multiply_e4m3(c, rows + k * 2, weights + k / 2 * (Pipe::kUnit >> 4) + k % 2 * 2, adds || k > 0);
        commit_products();
    }
    // Of the stage that came last, before they are needed: products keep shared memory busy.
    __device__ void load_scales() {
        if constexpr (kBlocks) {
            const uint32_t at = row_scales_at + last * Pipe::kStageBytes;
            rows[0] = __uint_as_float(load_shared1(at)), rows[1] = __uint_as_float(load_shared1(at + 32));
            uint32_t words[Pipe::kGroupBytes / 4];
#pragma unroll
            for (int i = 0; i < Pipe::kGroupBytes / 4; i += 4) {
                const uint4 x = load_shared(group_scales_at + last * Pipe::kStageBytes + i * 4);
                words[i] = x.x, words[i + 1] = x.y, words[i + 2] = x.z, words[i + 3] = x.w;
            }
#pragma unroll
            for (int g = 0; g < kGroups; g++) groups[g] = __uint_as_float(words[g]);
            mixed = words[Pipe::kMixed];
        }
    }
    // Adds sums of outputs from kFrom on, of a stage that is in a slot still.
    template <int kFrom, int kN>
    __device__ void add(float (&c)[kN], int slot) {
        if constexpr (!kBlocks) {
#pragma unroll
            for (int i = 0; i < kN; i++) total[kFrom / 2 + i] += c[i];
        } else if (mixed) {
#pragma unroll
            for (int s = 0; s < kN / 8; s++) {
                const float scale = __uint_as_float(load_shared1(strip_scales_at + slot * Pipe::kStageBytes + (kFrom / 16 + s) * 4)), f[2] = {rows[0] * scale, rows[1] * scale};
#pragma unroll
                for (int i = s * 8; i < s * 8 + 8; i++) total[kFrom / 2 + i] = fmaf(c[i], f[i / 2 % 2], total[kFrom / 2 + i]);
            }
        } else {
            float f[kGroups][2];
#pragma unroll
            for (int g = 0; g < kGroups; g++) f[g][0] = rows[0] * groups[g], f[g][1] = rows[1] * groups[g];
#pragma unroll
            for (int i = 0; i < kN; i++) total[kFrom / 2 + i] = fmaf(c[i], f[(kFrom + i * 2) * kGroups / kOut][i / 2 % 2], total[kFrom / 2 + i]);
        }
    }
    // The same of what is the last to need the stage, which is let go of as early as it can be; the last one of a tile is kept.
    template <int kFrom, int kN>
    __device__ void add_last(float (&c)[kN], int slot, bool keeps) {
        const bool early = !keeps && !(kBlocks && mixed);
        if (early) pipe.release(slot);
        add<kFrom>(c, slot);
        if (!keeps && !early) pipe.release(slot);
    }
    __device__ void clear() {
#pragma unroll
        for (int i = 0; i < kSums; i++) total[i] = 0;
    }
    // Makes sums results, whose last stage is in a slot, and lets go of that.
    __device__ void finish(int slot, bool scaled, bool biased) {
        float of_rows[2] = {1, 1};
        if constexpr (!kBlocks) {
            const uint32_t scales = row_scales_at + slot * Pipe::kStageBytes;
            of_rows[0] = __uint_as_float(load_shared1(scales)), of_rows[1] = __uint_as_float(load_shared1(scales + 32));
        }
        const uint32_t scales = pipe.output_scales(slot) + lane() % 4 * 8, biases = pipe.biases(slot) + lane() % 4 * 8;
        if (scaled || !kBlocks) {
#pragma unroll
            for (int j = 0; j < kOut / 8; j++) {
                const uint2 scale = load_shared2(scales + j * 32);
#pragma unroll
                for (int i = 0; i < 4; i++) total[j * 4 + i] *= (kBlocks ? 1 : of_rows[i / 2]) * __uint_as_float(i % 2 ? scale.y : scale.x);
            }
        }
        if (biased) {
#pragma unroll
            for (int j = 0; j < kOut / 8; j++) {
                const uint2 bias = load_shared2(biases + j * 32);
#pragma unroll
                for (int i = 0; i < 4; i++) total[j * 4 + i] += __uint_as_float(i % 2 ? bias.y : bias.x);
            }
        }
        pipe.release(slot);
    }
};

// Both sets are of all outputs.
template <bool kBlocks, int kOut, typename Pipe, typename Stage>
struct e4m3_whole_sums : e4m3_sums<kBlocks, kOut, Pipe, Stage> {
    using base = e4m3_sums<kBlocks, kOut, Pipe, Stage>;
    static constexpr int kTogether = kBlocks ? 1 : 2, kSums = base::kSums;
    using base::base, base::pipe, base::left, base::last;

    // Begins the stage that is summed together with the one begun before, which is let go of once something else is done.
    __device__ void begin_further(float (&c)[kSums], const auto &meanwhile) {
        const int first = last;
        this->next_stage(), this->begin(c, 0, true);
        meanwhile();
        wait_products<1>();
        pipe.release(first);
    }
    // Begins what is summed together with the stage that was begun. Where ends, the tile before is done while both run: of the pipe's slots
    // they and that tile's last one are held.
    __device__ void begin_rest(float (&c)[kSums], bool ends, int slot, const auto &done) {
        const auto end = [&] { done(slot), this->clear(); };
        if constexpr (kTogether == 1) {
            if (ends) end();
        } else if (ends) {
            begin_further(c, end);
        } else if (left > 0) {
            begin_further(c, [] {});
        }
        this->load_scales();
    }
    // Begins sums in c, and adds those in other, which were begun before; where they end a tile, it is done.
    __device__ void follow(float (&c)[kSums], float (&other)[kSums], int stages, const auto &done) {
        const int before = last;
        const bool ends = left == 0;
        if (ends) left = stages;
        this->next_stage(), this->begin(c, 0, false);
        wait_products<1>();
        pin(other);
        this->template add_last<0>(other, before, ends);
        begin_rest(c, ends, before, done);
    }
    // All tiles, which have kTogether stages or more.
    __device__ void run(int tiles, int stages, const auto &done) {
        float even[kSums], odd[kSums];
        this->clear();
        left = stages;
        this->next_stage(), this->begin(even, 0, false);
        begin_rest(even, false, 0, done);
        int n = tiles * ((stages + kTogether - 1) / kTogether);
        for (; n > 2; n -= 2) {
            follow(odd, even, stages, done);
            follow(even, odd, stages, done);
        }
        if (n == 2) {
            follow(odd, even, stages, done);
            wait_products<0>();
            pin(odd);
            this->template add<0>(odd, last);
        } else {
            wait_products<0>();
            pin(even);
            this->template add<0>(even, last);
        }
        done(last);
    }
};

// Each set is of half the outputs: tiles of 192, which ask the L2 cache for a quarter less, need no more registers. For blocks: whole rows'
// sums would hold too many stages.
template <int kOut, typename Pipe, typename Stage>
struct e4m3_half_sums : e4m3_sums<true, kOut, Pipe, Stage> {
    using base = e4m3_sums<true, kOut, Pipe, Stage>;
    static constexpr int kHalf = kOut / 2;
    using base::base, base::pipe, base::left, base::last;
    using half_t = float[kHalf / 2];

    // Of the stage whose products in low were begun last, which are added then.
    __device__ void follow_high(half_t &high, half_t &low) {
        this->begin(high, kHalf / 16, false);
        wait_products<1>();
        pin(low);
        this->template add<0>(low, last);
    }
    // Of the next stage; those in high are added then, and where they end a tile, it is done.
    __device__ void follow_low(half_t &low, half_t &high, int stages, const auto &done) {
        const int before = last;
        const bool ends = left == 0;
        if (ends) left = stages;
        this->next_stage(), this->begin(low, 0, false);
        wait_products<1>();
        pin(high);
        this->template add_last<kHalf>(high, before, ends);
        if (ends) done(before), this->clear();
        this->load_scales();
    }
    __device__ void run(int tiles, int stages, const auto &done) {
        half_t low, high;
        this->clear();
        left = stages;
        this->next_stage(), this->begin(low, 0, false);
        this->load_scales();
        int n = tiles * stages * 2;
        asm volatile("" : "+r"(n));  // of which the compiler must not know that it is even: ptxas would let products wait for each other
        for (; n > 2; n -= 2) {
            follow_high(high, low);
            follow_low(low, high, stages, done);
        }
        if (n == 2) {
            follow_high(high, low);
            wait_products<0>();
            pin(high);
            this->template add<kHalf>(high, last);
        } else {
            wait_products<0>();
            pin(low);
            this->template add<0>(low, last);
        }
        done(last);
    }
};

// Adds the sums of all parts, into those of the first; memory is kept after the call until the next. kSums of 128 threads each.
template <int kParts, int kSums>
__device__ void add_parts(float *exchange, int part, float (&sum)[kSums]) {
    if constexpr (kParts > 1) {
        const uint32_t own = uint32_t(__cvta_generic_to_shared(exchange)) + threadIdx.x % 128 * 16;
        sync_named<kParts * 128>(1);  // the first part has read what was there before
        if (part) {
#pragma unroll
            for (int i = 0; i < kSums; i += 4)
                store_shared(own + ((part - 1) * kSums + i) * 512, {__float_as_uint(sum[i]), __float_as_uint(sum[i + 1]), __float_as_uint(sum[i + 2]), __float_as_uint(sum[i + 3])});
        }
        sync_named<kParts * 128>(1);
        if (!part) {
#pragma unroll
            for (int p = 1; p < kParts; p++)
#pragma unroll
                for (int i = 0; i < kSums; i += 4) {
                    const uint4 x = load_shared(own + ((p - 1) * kSums + i) * 512);
                    sum[i] += __uint_as_float(x.x), sum[i + 1] += __uint_as_float(x.y), sum[i + 2] += __uint_as_float(x.z), sum[i + 3] += __uint_as_float(x.w);
                }
        }
    }
}

}  // namespace atlas
