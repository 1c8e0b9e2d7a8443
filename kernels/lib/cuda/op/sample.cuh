// Sample on a GPU: a cluster of kBlocks blocks for a row. A block keeps its span of the row's
// logits, edited and without what is ruled out, in shared memory or else in scratch. Without a draw the largest is the token. To draw,
// the blocks count tokens by their distance from the largest, and then the first block finds the token by its place in the order of
// logits: the bin, then the value in it, then the id among equals; the others list and count their tokens for it. Masses are 64-bit
// integers in units of 2⁻⁴⁰ of the largest token's, so that sums depend on no order.
// Grid: kBlocks, Rows. A span has span_of<kBlocks>(Vocab) logits of 4 bytes. Limit: 65536 logits of a span, for sums of parts of masses.
#pragma once
#include "lib/cuda/op/sample_moments.cuh"

namespace atlas::sampling {

// Sums over the threads before this one.
template <int kThreads>
__device__ share sums_before(shared &s, share mine) {
    share sum = mine;
    for (int d = 1; d < 32; d *= 2) {
        const share y = {__shfl_up_sync(kAllLanes, sum.count, d), __shfl_up_sync(kAllLanes, sum.mass, d)};
        if (lane() >= d) sum = sum + y;
    }
    __syncthreads();
    if (lane() == 31) s.sums[warp()] = sum;
    __syncthreads();
    sum.count -= mine.count, sum.mass -= mine.mass;
    for (int w = 0; w < warp(); w++) sum = sum + s.sums[w];
    return sum;
}

// Each thread offers a group of tokens, the first threads the largest. Leaves in s.digit the id of the group in which the
// count (or else the mass) exceeds target, of the last group with tokens if none does, and in s.picked what comes before it.
__device__ inline void choose(shared &s, int id, share before, share group, bool by_count, uint64_t target) {
    if (threadIdx.x == 0) s.last = -1;
    __syncthreads();
    if (group.count) atomicMax(&s.last, int(threadIdx.x));
    __syncthreads();
    const share with = before + group;
    const uint64_t reached = by_count ? before.count : before.mass, reaches = by_count ? with.count : with.mass;
    // The last group takes what lies past the end.
    if (group.count && reached <= target && (reaches > target || int(threadIdx.x) == s.last)) s.digit = id, s.picked = before;
    __syncthreads();
}

// The first block's search for places in the order of a row's tokens.
template <int kThreads, int kBlocks>
struct search {
    static_assert(kThreads == kBins && kThreads == kListed && kThreads >= kDigits, "a thread for each bin and each token of a list");
    const row<kThreads, kBlocks> &r;
    shared &s;
    int low = 0, high = -1;      // bins that are listed
    bool wide;                   // list all larger tokens too, where they fit: they will be asked for
    uint32_t key = 0, lower = 0; // this thread's token of the list, and how many of its key have lower ids
    share larger, same;          // and how the tokens before it and those of its key sum up

    // Sums up the bins; gives the mass of all tokens.
    __device__ uint64_t begin(bool all_larger) {
        wide = all_larger;
        const int t = threadIdx.x;
        uint64_t count, mass;
        load_peer(r.of_block(s.bin_count[t], t % kBlocks), count);
        load_peer(r.of_block(s.bin_mass[t], t % kBlocks), mass);
        const share inside = {uint32_t(count), mass}, above = sums_before<kThreads>(s, inside);
        __syncthreads();
        s.bin_count[t] = above.count, s.bin_mass[t] = above.mass, s.in_bin[t] = inside.count;
        if (t == kThreads - 1) s.picked = above + inside;
        __syncthreads();
        const uint64_t total = s.picked.mass;
        __syncthreads();
        return total;
    }

    // Lists the bins low … high, and ranks their tokens; before is what lies above.
    __device__ void list(share before) {
        const int t = threadIdx.x;
        if (t == 0) s.listed = 0;
        r.ask({kList, low, high, 0, 0, 0});
        const int n = s.listed;
        larger = before, same = {}, key = 0, lower = 0;
        if (t < n) {
            key = s.key[t];
            const uint32_t id = s.id[t];
            for (int j = 0; j < n; j++) {
                const share one = {1, s.list_mass[j]};
                if (s.key[j] > key) larger = larger + one;
                if (s.key[j] == key) same = same + one, lower += s.id[j] < id;
            }
        }
    }

    // Among all tokens of a bin, digit by digit.
    __device__ place among_many(int bin, share before, bool by_count, uint64_t target) {
        const int t = threadIdx.x;
        uint32_t prefix = 0, known = 0;
        for (int shift = 24; shift >= 0; shift -= 8) {
            if (t < kDigits) s.digit_count[t] = 0, s.digit_mass[t] = 0;
            r.ask({kCountDigits, bin, bin, prefix, known, shift});
            const int digit = kDigits - 1 - t;
            const share group = digit >= 0 ? share{uint32_t(s.digit_count[digit]), s.digit_mass[digit]} : share{};
            choose(s, digit, before + sums_before<kThreads>(s, group), group, by_count, target);
            before = s.picked;
            prefix |= uint32_t(s.digit) << shift;
            known |= 255u << shift;
            __syncthreads();
        }
        return {prefix, before};
    }

    // Where the count (or else the mass) of tokens, the largest first, exceeds target; the last place if it never does.
    __device__ place find(bool by_count, uint64_t target) {
        const int t = threadIdx.x;
        const share above = {uint32_t(s.bin_count[t]), s.bin_mass[t]};
        choose(s, t, above, {s.in_bin[t], (t + 1 < kBins ? s.bin_mass[t + 1] : ~0ull) - above.mass}, by_count, target);
        const int bin = s.digit;
        const share before = s.picked;
        if (s.in_bin[bin] > kListed) return among_many(bin, before, by_count, target);
        if (bin < low || bin > high) {
            const bool all = wide && s.bin_count[bin] + s.in_bin[bin] <= kListed;
            low = all ? 0 : bin, high = bin;
            list(all ? share{} : before);
        }
        if (t == 0) s.least_key = ~0u;
        __syncthreads();
        const share with = larger + same;
        const uint64_t reached = by_count ? larger.count : larger.mass, reaches = by_count ? with.count : with.mass;
        const bool there = t < int(s.listed), found = there && reached <= target && reaches > target;
        if (there) atomicMin(&s.least_key, key);
        const bool any = __syncthreads_or(found);
        if (any ? found : there && key == s.least_key) s.found_key = key, s.picked = larger;  // threads of one key agree
        __syncthreads();
        const place p = {s.found_key, s.picked};
        __syncthreads();
        return p;
    }

    // How much of the tokens a limit keeps. A kept share ends within the tokens of one key.
    __device__ uint64_t mass_to(bool by_count, uint64_t target) {
        const place p = find(by_count, target);
        const uint64_t each = r.mass(of_key(p.key));
        if (threadIdx.x == 0) s.last_kept = each;
        if (by_count) return p.before.mass + each * (target + 1 - p.before.count);
        return p.before.mass + (each ? each * ((target - p.before.mass) / each + 1) : 0);
    }

    // How much of what is kept XTC excludes: tokens of at least a mass, which is not 0, but for the last of them.
    __device__ uint64_t excluded(uint64_t least, uint64_t kept) {
        if (threadIdx.x == 0) s.digit_mass[0] = 0;
        r.ask({kSumLikely, 0, 0, uint32_t(least), uint32_t(least >> 32), 0});
        const uint64_t likely = s.digit_mass[0];
        uint32_t of = ~0u;
        for (int b = 0; b < kBlocks; b++) of = min(of, s.equal[b]);
        __syncthreads();
        if (likely == 0) return 0;
        return likely > kept ? kept - s.last_kept : likely - r.mass(of_key(of));
    }

    // The token that is number skip among those of a key that was found, by id; the last of them if there are fewer.
    __device__ int tie(uint32_t of, uint32_t skip) {
        const int t = threadIdx.x, bin = r.bin(of_key(of));
        if (s.in_bin[bin] <= kListed) {
            if (t < int(s.listed) && key == of && lower == min(skip, same.count - 1)) s.token = s.id[t];
        } else {
            if (t < kBlocks) s.equal[t] = 0;
            r.ask({kCountEqual, 0, 0, of, 0, 0});
            uint32_t total = 0;
            for (int b = 0; b < kBlocks; b++) total += s.equal[b];
            skip = min(skip, total - 1);
            int block = 0;
            while (skip >= s.equal[block]) skip -= s.equal[block++];
            r.ask({kPickEqual, block, 0, of, 0, int(skip)});
        }
        __syncthreads();
        return s.token;
    }
};

}  // namespace atlas::sampling

template <class P>
__device__ void sample(const atlas_Sample &a, void *scratch = nullptr) {
    constexpr bool kKeeps = P::kShared > 0;
    using namespace atlas::sampling;
    if constexpr (kKeeps) static_assert(atlas::shared_memory<P::kShared, span_of<P::kCluster>(P::kVocab) * 4>::kFits);
    extern __shared__ __align__(16) float memory[];
    __shared__ shared s;
    const int span = span_of<P::kCluster>(a.Vocab), rank = blockIdx.x, n = blockIdx.y, begin = rank * span, count = max(min(a.Vocab - begin, span), 0);
    float *z = kKeeps ? memory : static_cast<float *>(scratch) + (size_t(n) * P::kCluster + rank) * span;
    atlas::release_next();
    for (int i = threadIdx.x; i < kBins; i += P::kThreads) {
        s.count[i] = 0, s.bin_count[i] = s.bin_mass[i] = 0;
        for (int p = 0; p < 3; p++) s.part[p][i] = 0;
    }
    // These come from the host, before the step.
    const float temperature = a.Temperature[n];
    const int edits = a.EditStarts[n], edits_end = a.EditStarts[n + 1];
    atlas::arrive_cluster();
    atlas::wait_cluster();
    atlas::wait_for_previous();
    const float *in = a.Logits + size_t(n) * a.Vocab + begin;
    const int ruled = a.Mask ? a.MaskRow[n] : -1;
    const uint32_t *mask = ruled >= 0 ? a.Mask + size_t(ruled) * ((a.Vocab + 31) / 32) : nullptr;
    // Four logits that stand together are one thread's, so that edits keep their order without a barrier.
    if (a.Vocab % 4) {
        for (int i = threadIdx.x * 4; i < count; i += P::kThreads * 4)
            for (int j = i; j < min(i + 4, count); j++) z[j] = in[j];
    } else if (kKeeps) {
        for (int i = threadIdx.x * 4; i < count; i += P::kThreads * 4) atlas::copy_async(__cvta_generic_to_shared(z + i), in + i, true);
        atlas::commit_copies();
        atlas::wait_copies<0>();
    } else {
        for (int i = threadIdx.x * 4; i < count; i += P::kThreads * 4) *reinterpret_cast<float4 *>(z + i) = *reinterpret_cast<const float4 *>(in + i);
    }
    for (int e = edits; e < edits_end; e++) {
        const int64_t i = int64_t(a.EditToken[e]) - begin;
        if (i < 0 || i >= count || i / 4 % P::kThreads != threadIdx.x) continue;
        const float x = __fadd_rn(z[i], a.EditBias[e]);
        z[i] = __fadd_rn(x > 0 ? __fdiv_rn(x, a.EditFactor[e]) : __fmul_rn(x, a.EditFactor[e]), a.EditOffset[e]);
    }
    best top = {-INFINITY, 1 << 30};
    for (int g = threadIdx.x; g < span / 4; g += P::kThreads) {
        const float4 v = reinterpret_cast<const float4 *>(z)[g];
        float x[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int id = begin + g * 4 + j;
            x[j] += 0.0f;  // so that both zeros are one
            if (g * 4 + j >= count || !(fabsf(x[j]) <= FLT_MAX) || (mask && !(mask[id / 32] >> id % 32 & 1))) x[j] = -INFINITY;
            top = better(top, {x[j], id});
        }
        reinterpret_cast<float4 *>(z)[g] = {x[0], x[1], x[2], x[3]};
    }
    for (int d = 16; d; d /= 2) top = better(top, {__shfl_xor_sync(atlas::kAllLanes, top.z, d), __shfl_xor_sync(atlas::kAllLanes, top.id, d)});
    if (atlas::lane() == 0) s.part_best[atlas::warp()] = top;
    __syncthreads();
    if (threadIdx.x < P::kCluster) {
        for (int w = 0; w < P::kThreads / 32; w++) top = better(top, s.part_best[w]);
        atlas::store_peer(atlas::address_in(__cvta_generic_to_shared(&s.tops[rank]), threadIdx.x), float2{top.z, __int_as_float(top.id)});
    }
    atlas::sync_cluster();
    top = s.tops[0];
    for (int b = 1; b < P::kCluster; b++) top = better(top, s.tops[b]);
    if (top.z == -INFINITY || !(temperature > 0)) {
        if (rank == 0 && threadIdx.x == 0) a.Out[n] = top.z == -INFINITY ? -1 : top.id;
        return;
    }
    row<P::kThreads, P::kCluster> r = {s, z, span, begin, rank, top.z, fminf(1.0f / temperature, FLT_MAX)};
    double least = -DBL_MAX;
    if (a.TopNSigma[n] > 0 || a.MinEntropy[n] > 0) {
        const moments m = moments_of(r);
        if (const float min_entropy = a.MinEntropy[n]; min_entropy > 0 && m.entropy() < min_entropy) {
            if (rank == 0 && threadIdx.x == 0) a.Out[n] = top.id;
            return;
        }
        if (const float top_n_sigma = a.TopNSigma[n]; top_n_sigma > 0) least = fmax(least, double(top.z) - double(top_n_sigma) * m.deviation());
    }
    if (const float min_p = a.MinP[n]; min_p > 0) least = fmax(least, double(top.z) + double(temperature) * log(double(min_p)));
    r.fill_bins(least, top.z);
    if (rank) return r.work();
    const bool by_count = a.TopK[n] > 0 && a.TopK[n] < a.Vocab, by_mass = a.TopP[n] < 1;
    search<P::kThreads, P::kCluster> find = {r, s};
    uint64_t kept = find.begin(by_count || by_mass);
    if (by_count) kept = min(kept, find.mass_to(true, a.TopK[n] - 1));
    if (by_mass) {
        const double limit = fmax(0.0, double(a.TopP[n])) * double(kept);
        kept = min(kept, find.mass_to(false, limit < 1 ? 0 : uint64_t(ceil(limit)) - 1));
    }
    uint64_t excluded = 0;
    if (atlas::coin(a.Seed[n], a.Position[n]) < a.XTCProbability[n])
        excluded = find.excluded(uint64_t(fmax(1.0, ceil(double(a.XTCThreshold[n]) * double(kept)))), kept);
    const uint64_t rest = kept - excluded, target = excluded + min(uint64_t(double(atlas::uniform(a.Seed[n], a.Position[n])) * double(rest)), rest - 1);
    const place p = find.find(false, target);
    const uint64_t each = r.mass(of_key(p.key));
    const int id = find.tie(p.key, each ? uint32_t((target - p.before.mass) / each) : 0);
    if (threadIdx.x == 0) a.Out[n] = id;
    r.ask({kEnd, 0, 0, 0, 0, 0});
}
