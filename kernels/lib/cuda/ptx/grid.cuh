// Programmatic dependent launch. A launch without the attribute waits for nothing here.
#pragma once

namespace atlas {

// Waits until the kernels before this one are done and their results are seen. Every block calls it, also one that has
// nothing to do: the kernel after this one waits for this one alone.
__device__ __forceinline__ void wait_for_previous() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// Lets the next kernel start, as far as it needs no results.
__device__ __forceinline__ void release_next() { asm volatile("griddepcontrol.launch_dependents;" :::); }

}  // namespace atlas
