package main

import (
	"errors"
	"fmt"
	"io"
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

// run hands over to the runtime.
func (c *opsFlags) run(env *environment, verb string, more ...string) error {
	return env.runtime(env.stdout, c.args(verb, more...)...)
}

// args are the runtime's for a verb of its ops command.
func (c *opsFlags) args(verb string, more ...string) []string {
	args := append([]string{"ops", verb}, more...)
	for _, f := range []struct{ name, value string }{{"--hardware", c.HW}, {"--op", c.Op}, {"--match", c.Match}} {
		if f.value != "" {
			args = append(args, f.name, f.value)
		}
	}
	if c.JSON {
		args = append(args, "--json")
	}
	return args
}

// runtime runs a command of bin/atlasrt, which writes to stdout.
func (env *environment) runtime(stdout io.Writer, args ...string) error {
	root, err := findRoot(env.root)
	if err != nil {
		return err
	}
	program := filepath.Join(root, "bin", "atlasrt")
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("bin/atlasrt is not there (run make build)")
	}
	cmd := exec.CommandContext(env.ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, env.stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exitError(exit.ExitCode())
	}
	return err
}
