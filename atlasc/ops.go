package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// opsFlags choose what test and bench run. The runtime's own binary runs it: the compiler never links generated code,
// so that it can always regenerate it.
type opsFlags struct {
	HW    string `name:"hw" help:"Hardware (default: what fits this machine best)." placeholder:"NAME"`
	Op    string `name:"op" short:"o" help:"Only this operation." placeholder:"NAME"`
	Match string `name:"match" help:"Only cases whose name holds this." placeholder:"TEXT"`
	JSON  bool   `name:"json" help:"Print JSON."`
}

type testCommand struct{ opsFlags }

func (c *testCommand) Run(env *environment) error { return c.run(env, "test") }

type benchCommand struct {
	opsFlags
	Peers string `name:"peers" help:"Times of other libraries to show beside (see tools/peers/cuda.py)." type:"existingfile" placeholder:"FILE.JSON"`
}

func (c *benchCommand) Run(env *environment) error {
	if c.Peers != "" {
		return c.run(env, "bench", "--peers", c.Peers)
	}
	return c.run(env, "bench")
}

func (c *opsFlags) run(env *environment, verb string, more ...string) error {
	root, err := findRoot(env.root)
	if err != nil {
		return err
	}
	program := filepath.Join(root, "bin", "atlasrt")
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("bin/atlasrt is not there (run make build)")
	}
	args := append([]string{"ops", verb}, more...)
	for _, f := range []struct{ name, value string }{{"--hardware", c.HW}, {"--op", c.Op}, {"--match", c.Match}} {
		if f.value != "" {
			args = append(args, f.name, f.value)
		}
	}
	if c.JSON {
		args = append(args, "--json")
	}
	cmd := exec.CommandContext(env.ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, env.stdout, env.stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exitError(exit.ExitCode())
	}
	return err
}
