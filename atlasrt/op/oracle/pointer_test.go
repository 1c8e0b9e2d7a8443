package oracle

import (
	"runtime"
	"testing"
)

// deep needs more stack than a goroutine starts with, and so moves it.
func deep(n int) byte {
	var frame [256]byte
	if n > 0 {
		frame[n%len(frame)] = deep(n - 1)
	}
	return frame[n%len(frame)] + 1
}

// Memory whose address was taken stays where it is when the stack moves and the collector runs.
func TestAddressesStay(t *testing.T) {
	var pin runtime.Pinner
	defer pin.Unpin()
	data := make([]byte, 8)
	at := Address(&pin, data)
	deep(1000)
	runtime.GC()
	slice[byte](at, len(data))[3] = 7
	if data[3] != 7 {
		t.Error("what was stored at a slice's address is not in the slice: it moved")
	}
	if at := Address(&pin, []byte{}); at == 0 {
		t.Error("an empty slice has no address")
	}
}
