package version

import (
	"runtime/debug"
	"testing"
)

func TestOf(t *testing.T) {
	built := func(version string, settings ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: version}}
		for i := 0; i < len(settings); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
		}
		return info
	}
	const revision = "0123456789abcdef0123456789abcdef01234567"
	cases := []struct {
		what string
		info *debug.BuildInfo
		want string
	}{
		{"a release", built("v1.2.3", "vcs.revision", revision), "v1.2.3"},
		{"a commit", built("(devel)", "vcs.revision", revision, "vcs.modified", "false"), "devel-0123456789ab"},
		{"a changed tree", built("", "vcs.revision", revision, "vcs.modified", "true"), "devel-0123456789ab+dirty"},
		{"a short name", built("", "vcs.revision", "01"), "devel-01"},
		{"no repository", built("(devel)"), "devel"},
		{"no information", nil, "unknown"},
	}
	for _, c := range cases {
		if got := Of(c.info); got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
	}
	info := built("v1.2.3", "GOOS", "linux", "GOARCH", "arm64")
	if got, want := Program("atlasrt", info), "atlasrt v1.2.3 (go1.26 linux/arm64)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
