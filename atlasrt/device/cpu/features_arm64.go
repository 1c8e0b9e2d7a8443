package cpu

import "golang.org/x/sys/unix"

// Entries of the auxiliary vector (Linux, include/uapi/linux/auxvec.h).
const (
	hwcap  = 16
	hwcap2 = 26
)

// Names of the bits of the two entries, the lowest first (Linux, arch/arm64/kernel/cpuinfo.c).
var (
	hwcapNames = [...]string{
		"fp", "asimd", "evtstrm", "aes", "pmull", "sha1", "sha2", "crc32", "atomics", "fphp", "asimdhp", "cpuid",
		"asimdrdm", "jscvt", "fcma", "lrcpc", "dcpop", "sha3", "sm3", "sm4", "asimddp", "sha512", "sve", "asimdfhm",
		"dit", "uscat", "ilrcpc", "flagm", "ssbs", "sb", "paca", "pacg",
	}
	hwcap2Names = [...]string{
		"dcpodp", "sve2", "sveaes", "svepmull", "svebitperm", "svesha3", "svesm4", "flagm2", "frint", "svei8mm",
		"svef32mm", "svef64mm", "svebf16", "i8mm", "bf16", "dgh", "rng", "bti", "mte", "ecv", "afp", "rpres",
	}
)

// Features names what this processor and its kernel offer, in the words of Linux ("asimddp", "i8mm"). They come from
// the auxiliary vector, which an emulator gives truthfully; /proc/cpuinfo may be that of the machine it runs on.
func Features() []string {
	vector, _ := unix.Auxv()
	var names []string
	for _, entry := range vector {
		switch entry[0] {
		case hwcap:
			names = append(names, set(entry[1], hwcapNames[:])...)
		case hwcap2:
			names = append(names, set(entry[1], hwcap2Names[:])...)
		}
	}
	return names
}

// set picks the names of the bits that are set.
func set(bits uintptr, names []string) []string {
	var chosen []string
	for i, name := range names {
		if bits>>i&1 != 0 {
			chosen = append(chosen, name)
		}
	}
	return chosen
}
