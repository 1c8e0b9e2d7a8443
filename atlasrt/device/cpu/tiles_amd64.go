package cpu

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// What Linux is asked for (arch/x86/include/uapi/asm/prctl.h and asm/fpu/types.h).
const (
	requestPermission = 0x1023 // ARCH_REQ_XCOMP_PERM
	tileData          = 18     // XFEATURE_XTILE_DATA
)

// AllowTiles asks Linux to let this process use AMX's tile registers. Without that, the first instruction that touches them ends the
// process: the registers add 8 kB to every saved context, so that Linux gives them only on request.
func AllowTiles() error {
	if !slices.Contains(Features(), "amx_tile") {
		return errors.New("this processor has no AMX")
	}
	if _, _, code := unix.RawSyscall(unix.SYS_ARCH_PRCTL, requestPermission, tileData, 0); code != 0 {
		return fmt.Errorf("the system does not allow the use of AMX: %w", code)
	}
	return nil
}
