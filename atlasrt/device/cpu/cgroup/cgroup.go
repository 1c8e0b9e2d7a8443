// Package cgroup reads what the control groups of this process allow it: processor time and memory.
//
// A process is in one group of each hierarchy, and every group above it counts too: the smallest limit holds. Versions 1 and 2 are
// read, also where a machine has both. A group without the file sets no limit. A file that cannot be read or understood is an error;
// the limits of the other files are returned beside it. Sources: Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1.
package cgroup

import (
	"errors"
	"io/fs"
	"math"
	"strconv"
	"strings"
)

// Limits are what all groups together allow.
type Limits struct {
	Processors float64 // processors' worth of time; 0: no quota
	Memory     Memory  // the bound of memory
}

// Memory is the bound of a process's memory, in bytes. Where From is empty there is none.
type Memory struct {
	Limit int64  // the smallest limit
	Free  int64  // the least that any group with a limit has left; cached pages of files that were not used lately count as free
	From  string // the file that sets Limit
}

// Threads is how many threads the quota keeps busy on a machine with so many processors: the quota rounded down, at least one. Threads
// that wait for each other all stop once the quota is used up, so a thread more than it allows makes all of them slower.
func (l Limits) Threads(processors int) int {
	if l.Processors == 0 {
		return processors
	}
	return max(1, min(processors, int(l.Processors)))
}

// Read reads the limits of the process whose files lie below root's proc/self. root is the system's root folder.
func Read(root fs.FS) (Limits, error) {
	r := reader{root: root}
	limits := Limits{Memory: Memory{Limit: math.MaxInt64, Free: math.MaxInt64}}
	for _, group := range r.groups("cpu") {
		if n := r.quota(group); n > 0 && (limits.Processors == 0 || n < limits.Processors) {
			limits.Processors = n
		}
	}
	for _, group := range r.groups("memory") {
		m, ok := r.memory(group)
		if !ok {
			continue
		}
		if m.Limit <= limits.Memory.Limit { // of equal limits, the file of the outermost group is named: it was set there
			limits.Memory.Limit, limits.Memory.From = m.Limit, m.From
		}
		limits.Memory.Free = min(limits.Memory.Free, m.Free)
	}
	if limits.Memory.From == "" {
		limits.Memory = Memory{}
	}
	return limits, errors.Join(r.problems...)
}

// quota is the processors that a group may keep busy; 0: no quota.
func (r *reader) quota(g group) float64 {
	var quota, period string
	if g.unified {
		fields := strings.Fields(r.text(g.folder, "cpu.max"))
		if len(fields) == 0 {
			return 0
		}
		quota, period = fields[0], "100000" // the period that the kernel documents where none is given
		if len(fields) > 1 {
			period = fields[1]
		}
	} else {
		quota, period = r.text(g.folder, "cpu.cfs_quota_us"), r.text(g.folder, "cpu.cfs_period_us")
	}
	if quota == "" || quota == "max" || quota == "-1" {
		return 0
	}
	used, err := strconv.ParseInt(quota, 10, 64)
	each, wrong := strconv.ParseInt(period, 10, 64)
	if err != nil || wrong != nil || used <= 0 || each <= 0 {
		r.problem("the CPU quota of %s is %.40q in %.40q microseconds", g.folder, quota, period)
		return 0
	}
	return float64(used) / float64(each)
}

// unlimited is a bound above every real limit. Version 1 writes the largest int64, in whole pages, where there is none.
const unlimited = 1 << 62

// memory is a group's bound; false where it has none.
func (r *reader) memory(g group) (Memory, bool) {
	limits, usage, idle := []string{"memory.max", "memory.high"}, "memory.current", "inactive_file"
	if !g.unified {
		limits, usage, idle = []string{"memory.limit_in_bytes"}, "memory.usage_in_bytes", "total_inactive_file"
	}
	m := Memory{Limit: unlimited}
	for _, file := range limits {
		if n, ok := r.number(g.folder, file); ok && n < m.Limit {
			m.Limit, m.From = n, "/"+g.folder+"/"+file
		}
	}
	stat := r.statistics(g)
	if n, ok := stat["hierarchical_memory_limit"]; ok && n < m.Limit { // version 1: includes groups above that a container cannot see
		m.Limit, m.From = n, "/"+g.folder+"/memory.stat"
	}
	if m.Limit == unlimited {
		return m, false
	}
	used, _ := r.number(g.folder, usage)
	m.Free = m.Limit - min(m.Limit, max(0, used-stat[idle]))
	return m, true
}

// number reads a file that holds one number; false where there is none, or no limit.
func (r *reader) number(folder, file string) (int64, bool) {
	text := r.text(folder, file)
	if text == "" || text == "max" || text == "-1" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		r.problem("%s of %s is %.40q", file, folder, text)
		return 0, false
	}
	return int64(min(n, math.MaxInt64)), true
}

// statistics are the numbers of memory.stat.
func (r *reader) statistics(g group) map[string]int64 {
	all := map[string]int64{}
	for line := range strings.Lines(r.text(g.folder, "memory.stat")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			all[key] = int64(min(n, math.MaxInt64))
		}
	}
	return all
}
