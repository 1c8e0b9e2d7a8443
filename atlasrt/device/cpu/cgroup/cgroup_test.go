package cgroup

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// Lines of mountinfo.
const (
	tmpfs   = "30 23 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
	v2      = "31 23 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	cpu1    = "32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 master:3 - cgroup cgroup rw,cpu,cpuacct\n"
	memory1 = "33 30 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	unified = "34 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)

func TestRead(t *testing.T) {
	const none = "9223372036854771712"
	cases := []struct {
		name           string
		mounts, groups string // proc/self/mountinfo and proc/self/cgroup
		files          string // "folder/file=text;…" below sys/fs/cgroup
		processors     float64
		limit, free    int64
		from           string
		wrong          string // part of the error
	}{
		{"no control groups", "22 1 8:1 / / rw - ext4 /dev/sda rw\n", "", "", 0, 0, 0, "", ""},

		// Version 2.
		{"root without limits", v2, "0::/\n", "", 0, 0, 0, "", ""},
		{"no limit", v2, "0::/a\n", "a/cpu.max=max 100000;a/memory.max=max;a/memory.high=max;a/memory.current=5", 0, 0, 0, "", ""},
		{"quota", v2, "0::/a\n", "a/cpu.max=150000 100000", 1.5, 0, 0, "", ""},
		{"quota of an odd period", v2, "0::/a\n", "a/cpu.max=99999 33333", 3, 0, 0, "", ""},
		{"quota without a period", v2, "0::/a\n", "a/cpu.max=200000", 2, 0, 0, "", ""},
		{"memory", v2, "0::/a\n", "a/memory.max=1000;a/memory.current=700;a/memory.stat=anon 10\ninactive_file 300\n", 0, 1000, 600, "/sys/fs/cgroup/a/memory.max", ""},
		{"memory.high is lower", v2, "0::/a\n", "a/memory.max=1000;a/memory.high=800;a/memory.current=500", 0, 800, 300, "/sys/fs/cgroup/a/memory.high", ""},
		{"more used than allowed", v2, "0::/a\n", "a/memory.max=1000;a/memory.current=1500", 0, 1000, 0, "/sys/fs/cgroup/a/memory.max", ""},
		{"more idle than used", v2, "0::/a\n", "a/memory.max=1000;a/memory.current=100;a/memory.stat=inactive_file 300", 0, 1000, 1000, "/sys/fs/cgroup/a/memory.max", ""},
		{"nothing allowed", v2, "0::/a\n", "a/memory.max=0;a/memory.current=0", 0, 0, 0, "/sys/fs/cgroup/a/memory.max", ""},
		{"the group above is smaller", v2, "0::/a/b/c\n", "a/cpu.max=200000 100000;a/b/cpu.max=max 100000;a/b/c/cpu.max=400000 100000;" +
			"a/memory.max=1000;a/memory.current=900;a/b/c/memory.max=2000;a/b/c/memory.current=50", 2, 1000, 100, "/sys/fs/cgroup/a/memory.max", ""},
		{"the smaller limit has more left", v2, "0::/a/b\n", "a/memory.max=1000;a/memory.current=990;a/b/memory.max=500;a/b/memory.current=10", 0, 500, 10, "/sys/fs/cgroup/a/b/memory.max", ""},
		{"namespace: the mounted group is our own", v2, "0::/\n", "cpu.max=100000 100000;memory.max=1000;memory.current=1", 1, 1000, 999, "/sys/fs/cgroup/memory.max", ""},
		{"a group beside the namespace", v2, "0::/../b\n", "cpu.max=100000 100000;b/cpu.max=50000 100000", 1, 0, 0, "", ""},
		{"a group that is gone", v2, "0::/a/b (deleted)\n", "a/cpu.max=100000 100000", 1, 0, 0, "", ""},
		{"a part of the hierarchy is mounted", "31 23 0:27 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/docker/x/y\n", "cpu.max=200000 100000;y/cpu.max=100000 100000", 1, 0, 0, "", ""},
		{"the mount begins above the namespace", "31 23 0:27 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/\n", "cpu.max=200000 100000", 2, 0, 0, "", ""},
		{"another container's group is mounted as well", "35 23 0:27 /kube/other /mnt/other rw - cgroup2 cgroup2 rw\n" + v2, "0::/kube/own\n", "../../../mnt/other/cpu.max=100000 100000;kube/own/cpu.max=300000 100000", 3, 0, 0, "", ""},
		{"a mount below another", v2 + "40 31 0:50 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/a\n", "a/cpu.max=100000 100000", 1, 0, 0, "", ""},
		{"a folder with a space", `31 23 0:27 / /sys/fs/cgroup/my\040groups rw - cgroup2 cgroup2 rw` + "\n", "0::/a b\n", "my groups/a b/cpu.max=100000 100000", 1, 0, 0, "", ""},
		{"a group with a colon", v2, "0::/a:b\n", "a:b/cpu.max=100000 100000", 1, 0, 0, "", ""},

		// Version 1.
		{"1: no limit", cpu1 + memory1, "4:cpu,cpuacct:/a\n3:memory:/a\n", "cpu,cpuacct/a/cpu.cfs_quota_us=-1;cpu,cpuacct/a/cpu.cfs_period_us=100000;memory/a/memory.limit_in_bytes=" + none, 0, 0, 0, "", ""},
		{"1: limits", cpu1 + memory1, "4:cpu,cpuacct:/a\n3:memory:/b\n", "cpu,cpuacct/a/cpu.cfs_quota_us=250000;cpu,cpuacct/a/cpu.cfs_period_us=100000;" +
			"memory/b/memory.limit_in_bytes=4000;memory/b/memory.usage_in_bytes=1500;memory/b/memory.stat=inactive_file 1\ntotal_inactive_file 500\n", 2.5, 4000, 3000, "/sys/fs/cgroup/memory/b/memory.limit_in_bytes", ""},
		{"1: groups above", cpu1 + memory1, "4:cpu,cpuacct:/a/b\n3:memory:/a/b\n", "cpu,cpuacct/a/cpu.cfs_quota_us=100000;cpu,cpuacct/a/cpu.cfs_period_us=100000;cpu,cpuacct/a/b/cpu.cfs_quota_us=-1;cpu,cpuacct/a/b/cpu.cfs_period_us=100000;" +
			"memory/a/memory.limit_in_bytes=4000;memory/a/memory.usage_in_bytes=1000;memory/a/b/memory.limit_in_bytes=" + none, 1, 4000, 3000, "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", ""},
		{"1: a limit that cannot be seen", memory1, "3:memory:/\n", "memory/memory.limit_in_bytes=" + none + ";memory/memory.usage_in_bytes=100;memory/memory.stat=hierarchical_memory_limit 1000\n", 0, 1000, 900, "/sys/fs/cgroup/memory/memory.stat", ""},
		{"1: groups below know the limit above", memory1, "3:memory:/a/b\n", "memory/a/memory.limit_in_bytes=1000;memory/a/memory.usage_in_bytes=400;memory/a/b/memory.usage_in_bytes=100;" +
			"memory/a/b/memory.limit_in_bytes=" + none + ";memory/a/b/memory.stat=hierarchical_memory_limit 1000", 0, 1000, 600, "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", ""},
		{"1: a container that knows its path on the host", "32 30 0:28 /docker/x /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n", "4:cpu:/kube/y\n", "cpu/cpu.cfs_quota_us=100000;cpu/cpu.cfs_period_us=50000", 2, 0, 0, "", ""},
		{"1: other controllers", "32 30 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n", "4:cpuset:/a\n", "cpuset/a/cpu.cfs_quota_us=100000;cpuset/a/cpu.cfs_period_us=100000", 0, 0, 0, "", ""},

		// Both.
		{"hybrid: limits in 1", tmpfs + cpu1 + memory1 + unified, "5:cpu,cpuacct:/a\n3:memory:/a\n1:name=systemd:/a\n0::/a\n", "cpu,cpuacct/a/cpu.cfs_quota_us=100000;cpu,cpuacct/a/cpu.cfs_period_us=100000;" +
			"memory/a/memory.limit_in_bytes=1000;memory/a/memory.usage_in_bytes=0;unified/a/cgroup.procs=1", 1, 1000, 1000, "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", ""},
		{"hybrid: CPU in 2, memory in 1", tmpfs + memory1 + unified, "3:memory:/a\n0::/b\n", "unified/b/cpu.max=100000 100000;memory/a/memory.limit_in_bytes=1000", 1, 1000, 1000, "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", ""},

		// What is wrong is said, and the rest holds.
		{"garbage in a quota", v2, "0::/a/b\n", "a/b/cpu.max=lots;a/cpu.max=100000 100000", 1, 0, 0, "", `the CPU quota of sys/fs/cgroup/a/b is "lots"`},
		{"a period of zero", v2, "0::/a\n", "a/cpu.max=100000 0", 0, 0, 0, "", "CPU quota"},
		{"a negative quota", v2, "0::/a\n", "a/cpu.max=-5 100000", 0, 0, 0, "", "CPU quota"},
		{"garbage in memory", v2, "0::/a/b\n", "a/b/memory.max=1G;a/memory.max=1000", 0, 1000, 1000, "/sys/fs/cgroup/a/memory.max", `memory.max of sys/fs/cgroup/a/b is "1G"`},
		{"garbage in statistics", v2, "0::/a\n", "a/memory.max=1000;a/memory.current=10;a/memory.stat=inactive_file\nx y z\n\n", 0, 1000, 990, "/sys/fs/cgroup/a/memory.max", ""},
		{"garbage in cgroup", v2, "hello\n0::/a\n", "a/cpu.max=100000 100000", 1, 0, 0, "", `the line "hello`},
		{"a file that may not be read", v2, "0::/a/b\n", "a/b/cpu.max=!;a/cpu.max=200000 100000", 2, 0, 0, "", "permission denied"},
		{"garbage in mountinfo", "- -\n\n1 2\n" + v2, "0::/a\n", "a/cpu.max=100000 100000", 1, 0, 0, "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			files := fstest.MapFS{"proc/self/mountinfo": {Data: []byte(c.mounts)}, "proc/self/cgroup": {Data: []byte(c.groups)}}
			for file := range strings.SplitSeq(c.files, ";") {
				if name, text, ok := strings.Cut(file, "="); ok {
					name = strings.Replace("sys/fs/cgroup/"+name, "sys/fs/cgroup/../../../", "", 1)
					files[name] = &fstest.MapFile{Data: []byte(text)}
				}
			}
			got, err := Read(guarded{files})
			want := Limits{c.processors, Memory{c.limit, c.free, c.from}}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("got error %v, want %q", err, c.wrong)
			}
		})
	}
}

// guarded refuses to open files that hold "!".
type guarded struct{ fstest.MapFS }

func (g guarded) Open(name string) (fs.File, error) {
	if f := g.MapFS[name]; f != nil && string(f.Data) == "!" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return g.MapFS.Open(name)
}

func TestThreads(t *testing.T) {
	cases := []struct {
		quota            float64
		processors, want int
	}{{0, 8, 8}, {0.25, 8, 1}, {1, 8, 1}, {1.5, 8, 1}, {1.99, 8, 1}, {2, 8, 2}, {7.5, 8, 7}, {64, 8, 8}, {1, 1, 1}}
	for _, c := range cases {
		if got := (Limits{Processors: c.quota}).Threads(c.processors); got != c.want {
			t.Errorf("quota of %v on %d processors: got %d threads, want %d", c.quota, c.processors, got, c.want)
		}
	}
}
