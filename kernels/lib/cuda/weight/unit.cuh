// A unit is 64 columns of a strip, 16 rows of weights, in any layout: where it lies, and as A fragments of mma.m16n8k16 once
// it is in shared memory. Schemes whose scales do not fit bf16 scale the sums of 32 columns instead, or of 16 (kPartial).
#pragma once
#include "lib/cuda/ptx/bulk.cuh"
#include "lib/cuda/ptx/fragment.cuh"
#include "lib/cuda/ptx/load.cuh"
#include "lib/cuda/ptx/mma.cuh"
#include "lib/cuda/weight/unit_scales.cuh"

namespace atlas {

__device__ inline uint32_t shared_address(const void *p) { return uint32_t(__cvta_generic_to_shared(p)); }

// x, which the compiler would otherwise work out again for every use.
__device__ __forceinline__ uint32_t held(uint32_t x) {
    asm volatile("shfl.sync.idx.b32 %0, %0, %1, 0x1f, 0xffffffff;" : "+r"(x) : "r"(lane()));
    return x;
}

// Ones: their product with activations is the sum of 32 columns, by which q4_1's minima are multiplied. It serves all strips.
template <atlas_Scheme kScheme>
struct ones {
    __device__ void take(int, int, const uint32_t (&)[4], float (&)[4]) const {}
};
template <>
struct ones<ATLAS_SCHEME_Q4_1> {
    static constexpr uint32_t kOne = 0x00010001;  // 2⁻¹³³, as codes have it
    uint32_t a[4];

    __device__ ones() {
        const uint32_t y = blockDim.y - 1, z = blockDim.z - 1;  // zero, which the compiler does not know: it would make all four anew for every product
        a[0] = held(kOne + y), a[1] = held(kOne + y), a[2] = held(kOne + z), a[3] = held(kOne + z);
    }
    // c = the sums of a half's tile, whichever it is, of lifted activations.
    __device__ void take(int, int, const uint32_t (&x)[4], float (&c)[4]) const {
#pragma unroll
        for (int i = 0; i < 4; i++) c[i] = 0;
        product(c, a, x[0], x[1]), product(c, a, x[2], x[3]);
    }
};

template <atlas_Scheme kScheme>
struct unit {
    using layout = frag<kScheme>;
    static constexpr int kBytes = 64 / layout::kCols * layout::kBlock, kPitch = kBytes;
    static constexpr bool kHalves = layout::kCols == 32;  // which may be all there is
    static constexpr bool kPartial = kScheme != ATLAS_SCHEME_F8 && kScheme != ATLAS_SCHEME_NVFP4;
    static constexpr int kParts = unit_scales<kScheme>::kParts;
    static constexpr float kFactor = layout::kCodesFactor;  // of sums of exact fragments
    // Whether activations are to be lifted, for fragments as they are decoded; then of their sums.
    static constexpr bool kLifts = layout::kRaw || kScheme == ATLAS_SCHEME_Q4_1;
    static constexpr float kLiftedFactor = !kLifts ? kFactor : layout::kRaw ? 0x1p56f : 0x1p69f;

    __device__ static const uint8_t *at(const atlas_Weight &w, int m, int strip, int u) { return layout::strip(w, m, strip) + size_t(u) * kBytes; }
    // Of n units from u on.
    __device__ static int bytes(int cols, int u, int n) { return min(n * kBytes, int(layout::strip_bytes(cols)) - u * kBytes); }

    uint4 codes[layout::kVectors];
    unit_scales<kScheme> scales;

    __device__ void load(const uint8_t *shared) { layout::load(shared, codes), scales.load(shared); }
    // The same from global memory, of weights that nothing else in this kernel reads.
    __device__ void load_once(const uint8_t *global) {
#pragma unroll
        for (int v = 0; v < layout::kVectors; v++) codes[v] = atlas::load_once(global + v * layout::kNext + codes_at());
        scales.load_once(global);
    }
    // The same by addresses of the shared window: of the lane's codes, codes_at() after the unit's first byte, and of its scales,
    // which lie scales_at() after it.
    __device__ static int codes_at() { return layout::lane_at(); }
    __device__ static int scales_at() { return layout::kCodes % 1024 + lane() / 4 * unit_scales<kScheme>::kLaneBytes; }
    template <bool kMinima = kScheme == ATLAS_SCHEME_Q4_1>
    __device__ void load(uint32_t lane_codes, uint32_t lane_scales) { layout::load(lane_codes, codes), scales.template load<kMinima>(lane_scales); }
    // The fragments of the two steps of a half; kAsDecoded as in frag::codes.
    template <bool kAsDecoded = false>
    __device__ void fragments(int half, uint32_t (&a)[2][4]) const {
        layout::template codes<kAsDecoded>(codes, 2 * half, a[0]);
        layout::template codes<kAsDecoded>(codes, 2 * half + 1, a[1]);
        if constexpr (kScheme == ATLAS_SCHEME_NVFP4) {
            const nvfp4_scales s(scales.words);
            s.apply(2 * half, a[0]), s.apply(2 * half + 1, a[1]);
        }
    }
    // A half's fragments as they are decoded, from shared memory. kApart: no others are held, and the compiler need not know which half it is.
    static constexpr bool kRaw = layout::kRaw, kApart = kRaw || layout::kSix || layout::kFour && kPartial;
    __device__ void load_half(const uint8_t *shared, int half, uint32_t (&a)[2][4]) {
        if constexpr (kApart) {
            layout::load_half(shared, half, codes), scales.load_half(shared, half);
            fragments<true>(0, a);
        } else {
            load(shared);
            fragments<true>(half, a);
        }
    }
    __device__ void factors(int half, float block, float2 (&by)[kParts]) const { scales.factors(half, block, by); }
    __device__ float2 minima(int half) const { return scales.minima(half); }
};

template <>
struct unit<ATLAS_SCHEME_BF16> {
    static constexpr int kBytes = 2048, kPitch = 8192;  // a quarter of a tile
    static constexpr bool kHalves = false, kPartial = false, kLifts = false, kRaw = false;
    static constexpr int kParts = 1;
    static constexpr float kFactor = 1, kLiftedFactor = 1;

    __device__ static const uint8_t *at(const atlas_Weight &w, int m, int strip, int u) {
        return reinterpret_cast<const uint8_t *>(tile64(w, m, strip / 4, u)) + strip % 4 * kBytes;
    }
    __device__ static int bytes(int, int, int n) { return n * kBytes; }

    uint32_t steps[4][4];

    __device__ void load(const uint8_t *shared) {
        const uint32_t row = shared_address(shared) + lane() % 16 * 128;
#pragma unroll
        for (int s = 0; s < 4; s++) load_matrices(steps[s], row + ((2 * s + lane() / 16) ^ lane() % 8) * 16);
    }
    __device__ static int codes_at() { return 0; }
    __device__ static int scales_at() { return 0; }
    template <bool = false>
    __device__ void load(uint32_t from, uint32_t) {
        const uint32_t row = from + lane() % 16 * 128;
#pragma unroll
        for (int s = 0; s < 4; s++) load_matrices(steps[s], row + ((2 * s + lane() / 16) ^ lane() % 8) * 16);
    }
    template <bool = false>
    __device__ void fragments(int half, uint32_t (&a)[2][4]) const {
#pragma unroll
        for (int s = 0; s < 2; s++)
#pragma unroll
            for (int i = 0; i < 4; i++) a[s][i] = steps[2 * half + s][i];
    }
    __device__ void factors(int, float, float2 (&)[1]) const {}
    __device__ float2 minima(int) const { return {}; }
};

// Copies n units of a strip to shared memory, one after the other, by one thread; bytes is all that there is of them. kUsual: how many they mostly are.
template <atlas_Scheme kScheme, int kUsual>
__device__ __forceinline__ void copy_units(uint32_t to, const uint8_t *from, int n, int bytes, uint32_t barrier) {
    using unit_t = unit<kScheme>;
    const auto copy = [&](int i) { copy_bulk(to + i * unit_t::kBytes, from + i * unit_t::kPitch, unit_t::kBytes, barrier); };
    if (unit_t::kPitch == unit_t::kBytes) {
        copy_bulk(to, from, bytes, barrier);
    } else if (n == kUsual) {  // instructions in a row
#pragma unroll
        for (int i = 0; i < kUsual; i++) copy(i);
    } else {
#pragma unroll 1
        for (int i = 0; i < n; i++) copy(i);
    }
}

// Takes activations times 2⁶⁴, since fragments that stay as they are decoded are so small; beyond ±2⁶³ they overflow.
__device__ inline void lift(uint32_t (&x)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = multiply_pair(x[i], kTwo64);
}

// c += products of 32 columns, which have scales of their own, or each 16 of them. sum: that of the activations, by which q4_1's minima are
// multiplied where kMinima.
template <bool kMinima, int kParts>
__device__ __forceinline__ void add_part(const uint32_t (&a)[2][4], const uint32_t (&x)[4], const float (&sum)[4], const float2 (&factor)[kParts], float2 least, float (&c)[4]) {
    float p[kParts][4] = {};
    product(p[0], a[0], x[0], x[1]);
    product(p[kParts - 1], a[1], x[2], x[3]);
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int k = 0; k < kParts; k++) c[i] = fmaf(p[k][i], i < 2 ? factor[k].x : factor[k].y, c[i]);
        if (kMinima) c[i] = fmaf(sum[i], i < 2 ? least.x : least.y, c[i]);
    }
}

// Who sees to it that activations are lifted, where the scheme wants that: whoever brought the rows, or the product; or f8's codes are exact.
enum lifting { kLifted, kLifts, kExact };

// c += a unit of strips, strip_bytes apart, times activations, and where kMinima q4_1's minima times their sums. Row r of tile j lies at
// x + lanes[j] for the lane whose turn it is in ldmatrix; where kSwizzled, rows lie in the swizzle of 128 bytes. left: columns that
// there are; block: f8block's scale of each strip.
template <atlas_Scheme kScheme, int kTiles, int kStrips, lifting kLifting = kLifts, bool kSwizzled = false, bool kMinima = kScheme == ATLAS_SCHEME_Q4_1>
struct unit_product {
    using unit_t = unit<kScheme>;
    static constexpr bool kWidens = kLifting == kExact && unit_t::kRaw;
    static constexpr float kFactor = kWidens ? unit_t::kFactor : unit_t::kLiftedFactor;  // of the sums
    static constexpr bool kEarly = kTiles <= 2;  // both halves' activations at once
    __device__ static uint32_t half_at(uint32_t line, int half) { return kSwizzled ? line ^ half * 64 : line + half * 64; }
    unit_t weights[kStrips];
    uint32_t x[kTiles][kEarly ? 2 : 1][4];

    __device__ void load(const uint8_t *at, int strip_bytes, uint32_t rows, const uint32_t (&lanes)[kTiles]) {
        if constexpr (kEarly)
#pragma unroll
            for (int j = 0; j < kTiles; j++) load_matrices(x[j][0], rows + lanes[j]), load_matrices(x[j][1], half_at(rows + lanes[j], 1));
#pragma unroll
        for (int s = 0; s < kStrips; s++) weights[s].load(at + s * strip_bytes);
    }
    // The same by addresses of the shared window, which unit::load explains.
    __device__ void load(uint32_t codes, uint32_t scales, int strip_bytes, uint32_t rows, const uint32_t (&lanes)[kTiles]) {
        if constexpr (kEarly)
#pragma unroll
            for (int j = 0; j < kTiles; j++) load_matrices(x[j][0], rows + lanes[j]), load_matrices(x[j][1], half_at(rows + lanes[j], 1));
#pragma unroll
        for (int s = 0; s < kStrips; s++) weights[s].template load<kMinima>(codes + s * strip_bytes, scales + s * strip_bytes);
    }
    // sums: ones, or others that are given what ones would add up (minima.cuh).
    template <typename Sums>
    __device__ void multiply(const Sums &sums, uint32_t rows, const uint32_t (&lanes)[kTiles], int left, const float (&block)[kStrips], float (&c)[kStrips][kTiles][4]) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            if (unit_t::kHalves && half && left <= 32) break;
            if constexpr (!kEarly)
#pragma unroll
                for (int j = 0; j < kTiles; j++) load_matrices(x[j][0], half_at(rows + lanes[j], half));
            float sum[kTiles][4] = {};
#pragma unroll
            for (int j = 0; j < kTiles; j++) {
                if constexpr (unit_t::kLifts && kLifting != kLifted && !kWidens) lift(x[j][kEarly ? half : 0]);
                sums.take(half, j, x[j][kEarly ? half : 0], sum[j]);
            }
#pragma unroll
            for (int s = 0; s < kStrips; s++) {
                uint32_t a[2][4];
                weights[s].template fragments<!kWidens>(half, a);
                float2 factor[unit_t::kParts];
                weights[s].factors(half, block[s], factor);
                const float2 least = weights[s].minima(half);
#pragma unroll
                for (int j = 0; j < kTiles; j++) {
                    const uint32_t (&b)[4] = x[j][kEarly ? half : 0];
                    if constexpr (!unit_t::kPartial) {
                        product(c[s][j], a[0], b[0], b[1]);
                        product(c[s][j], a[1], b[2], b[3]);
                    } else {
                        add_part<kMinima>(a, b, sum[j], factor, least, c[s][j]);
                    }
                }
            }
        }
    }
};

}  // namespace atlas
