package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestMarkOfChangedTree changes the tree while a build is under way: no mark may say that what lies there then is settled.
func TestMarkOfChangedTree(t *testing.T) {
	cases := []struct {
		what, file, text string
		settled          bool
	}{
		{"nothing", "", "", true},
		{"a file beside", "README.md", "text", true},
		{"a source", "kernels/lib/common.h", "// changed\n", false},
		{"a new source", "kernels/lib/other.h", "// new\n", false},
		{"a source of the contract", "atlasrt/op/other.go", "package op\n", false},
		{"what the build wrote", "generated/toy/zset.go", "package toy\n", false},
		{"what nobody wrote", "generated/toy/other.go", "package toy\n", false},
		{"an image, which is not asked for", "generated/toy/blob/image.zst", "atlas image 0\n", true},
	}
	for _, c := range cases {
		root := t.TempDir()
		if err := copyTree("testdata/tree", root); err != nil {
			t.Fatal(err)
		}
		env := &environment{ctx: context.Background(), stdout: io.Discard, stderr: io.Discard, root: root, cache: filepath.Join(root, ".cache")}
		build := &buildCommand{HW: "*", Model: "*", Quant: "*", NoCompile: true}
		before, err := build.look(env)
		if err != nil {
			t.Fatal(err)
		}
		r, err := build.build(env)
		if err != nil {
			t.Fatal(err)
		}
		if c.file != "" {
			file := filepath.Join(root, c.file)
			if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(c.text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		build.leaveMark(env, before, r)
		after, err := build.look(env)
		if err != nil {
			t.Fatal(err)
		}
		if got := build.settled(env, after); got != c.settled {
			t.Errorf("%s is different after a build: settled is %v, want %v", c.what, got, c.settled)
		}
	}
}
