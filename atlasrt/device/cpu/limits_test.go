package cpu

import (
	"testing"
	"testing/fstest"
)

// machine is one with 1000 kB, 800 of them free, whose control group has the given files.
func machine(files map[string]string) fstest.MapFS {
	root := fstest.MapFS{
		"proc/meminfo":        {Data: []byte("MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 800 kB\n")},
		"proc/self/mountinfo": {Data: []byte("31 23 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")},
		"proc/self/cgroup":    {Data: []byte("0::/a\n")},
	}
	for name, text := range files {
		root["sys/fs/cgroup/a/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

func TestThreadsFollowTheQuota(t *testing.T) {
	cases := []struct {
		asked, processors int
		quota             string
		want              int // 0: refused
	}{
		{0, 8, "max 100000", 8},
		{0, 8, "100000 100000", 1},
		{0, 8, "350000 100000", 3},
		{0, 2, "800000 100000", 2},
		{0, 512, "max 100000", 256},
		{0, 8, "garbage", 8},
		{5, 8, "100000 100000", 5},
		{257, 8, "max 100000", 0},
		{-1, 8, "max 100000", 0},
	}
	for _, c := range cases {
		d, err := newDevice(c.asked, c.processors, machine(map[string]string{"cpu.max": c.quota}))
		got := 0
		if err == nil {
			got = d.Threads()
		}
		if got != c.want {
			t.Errorf("%d threads asked of %d processors, quota %q: got %d, %v, want %d", c.asked, c.processors, c.quota, got, err, c.want)
		}
	}
}

func TestMemoryFollowsTheLimit(t *testing.T) {
	const limit = "/sys/fs/cgroup/a/memory.max"
	cases := []struct {
		name        string
		files       map[string]string
		free, total int64
		from        string
	}{
		{"no limit", nil, 800 << 10, 1000 << 10, ""},
		{"limit", map[string]string{"memory.max": "512000", "memory.current": "12000"}, 500000, 512000, limit},
		{"limit beyond the machine", map[string]string{"memory.max": "999999999"}, 800 << 10, 1000 << 10, ""},
		{"limit beyond the machine, mostly used", map[string]string{"memory.max": "2000000", "memory.current": "1900000"}, 100000, 1000 << 10, limit},
		{"limit above what the machine has free", map[string]string{"memory.max": "900000", "memory.current": "0"}, 800 << 10, 900000, limit},
	}
	for _, c := range cases {
		d, err := newDevice(1, 1, machine(c.files))
		if err != nil {
			t.Fatal(err)
		}
		if free, total, from := d.BoundMemory(); free != c.free || total != c.total || from != c.from {
			t.Errorf("%s: got %d of %d, from %q, want %d of %d, from %q", c.name, free, total, from, c.free, c.total, c.from)
		}
	}
}
