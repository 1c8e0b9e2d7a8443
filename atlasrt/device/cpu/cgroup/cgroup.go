// Package cgroup reads what the control groups of this process allow it: processor time and memory.
//
// A process is in one group of each hierarchy, and every group above it counts too: the smallest limit wins. Versions 1 and 2 are
// read, also side by side. A group that has no such file sets no limit; a file that cannot be read or understood is an error, and what
// the others say holds all the same.
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
	Processors float64 // worth of time; 0: no quota
	Memory     Memory
}

// Memory is the bound of a process's memory, in bytes. Where From is empty there is none.
type Memory struct {
	Limit int64  // the smallest
	Free  int64  // the least that any group with a limit has left; file pages that nobody used lately count as free
	From  string // the file that sets Limit
}

// Threads is how many of a machine's processors the quota keeps busy, at least one. Threads that wait for each other are stopped together
// once the quota is used up, so a fraction of a processor counts for nothing.
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
		if m.Limit <= limits.Memory.Limit { // of equal ones the outermost, whose own file says so
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

// unlimited is where version 1 has numbers so large that they mean no limit: the largest int64 in whole pages.
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
	if n, ok := stat["hierarchical_memory_limit"]; ok && n < m.Limit { // version 1: of groups above, also those that cannot be seen
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
