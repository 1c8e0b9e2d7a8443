package cgroup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// group is a folder of a hierarchy.
type group struct {
	folder  string // below the root, without a slash in front
	unified bool   // version 2
}

// reader reads below a root and keeps what went wrong.
type reader struct {
	root     fs.FS
	problems []error
}

func (r *reader) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("control group: "+format, args...))
}

// mostBytes bounds a file: a machine with many containers has thousands of mounts.
const mostBytes = 16 << 20

// text is what a file holds, without space around it; nothing where there is no such file.
func (r *reader) text(folder, file string) string {
	f, err := r.root.Open(path.Join(folder, file))
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	var text []byte
	if err == nil {
		defer f.Close()
		text, err = io.ReadAll(io.LimitReader(f, mostBytes))
	}
	if err != nil {
		r.problem("%w", err)
	}
	return strings.TrimSpace(string(text))
}

// groups lists the groups that bound a controller for this process, the innermost of each hierarchy first.
func (r *reader) groups(controller string) []group {
	mounts := parseMounts(r.text("proc/self", "mountinfo"))
	var all []group
	for line := range strings.Lines(r.text("proc/self", "cgroup")) {
		fields := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3) // id:controllers:path
		if len(fields) != 3 {
			r.problem("/proc/self/cgroup has the line %.80q", line)
			continue
		}
		unified := fields[0] == "0" && fields[1] == ""
		if !unified && !slices.Contains(strings.Split(fields[1], ","), controller) {
			continue
		}
		m, inside := find(mounts, unified, controller, fields[2])
		for ; m.point != ""; inside = path.Dir(inside) {
			if g := (group{strings.TrimPrefix(path.Join(m.point, inside), "/"), unified}); !slices.Contains(all, g) {
				all = append(all, g)
			}
			if inside == "/" {
				break
			}
		}
	}
	return all
}

// mount is a folder where a hierarchy, or a part of it, is mounted.
type mount struct {
	top         string   // the group whose files lie in point
	point       string   // the folder
	unified     bool     // version 2
	controllers []string // of version 1
}

// parseMounts finds the mounts of control groups in mountinfo, whose lines are "ID PARENT DEVICE ROOT POINT OPTIONS [TAG …] - TYPE
// SOURCE OPTIONS" (proc_pid_mountinfo(5)). Where several are mounted on one folder, the last hides the others.
func parseMounts(text string) []mount {
	var all []mount
	for line := range strings.Lines(text) {
		before, after, _ := strings.Cut(line, " - ")
		place, kind := strings.Fields(before), strings.Fields(after)
		if len(place) < 5 || len(kind) < 1 {
			continue
		}
		m := mount{top: unescape(place[3]), point: unescape(place[4])}
		all = slices.DeleteFunc(all, func(other mount) bool { return other.point == m.point })
		switch {
		case kind[0] == "cgroup2":
			m.unified = true
		case kind[0] == "cgroup" && len(kind) > 2:
			m.controllers = strings.Split(kind[2], ",")
		default:
			continue
		}
		all = append(all, m)
	}
	return all
}

// find picks the mount through which the process's group can be read, and returns the group's path below that mount. Where several
// mounts hold the group, it picks the one that shows most of the groups above it. Where none does, as in a container whose
// /proc/self/cgroup has the path on the host, it assumes that the mounted group is the process's own.
func find(mounts []mount, unified bool, controller, group string) (found mount, inside string) {
	if strings.HasPrefix(group, "/..") { // beside or above what this namespace shows
		group = "/"
	}
	group = path.Clean("/" + group)
	for _, m := range mounts {
		if m.unified != unified || !unified && !slices.Contains(m.controllers, controller) {
			continue
		}
		rest, below := strings.CutPrefix(group, strings.TrimSuffix(m.top, "/"))
		below = below && (rest == "" || rest[0] == '/')
		switch {
		case below && (inside == "" || len(rest) > len(inside)):
			found, inside = m, path.Clean("/"+rest)
		case found.point == "":
			found = m
		}
	}
	if inside == "" {
		inside = "/"
	}
	return found, inside
}

// unescape undoes mountinfo's octal escapes of space, tab, newline and backslash.
func unescape(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if n, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}
