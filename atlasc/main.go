// Command atlasc compiles kernels: it reads manifests, compiles what they name, and writes the Go code that launches it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/atlas-inference/atlas/atlasc/internal/diag"
	"github.com/atlas-inference/atlas/atlasc/internal/toolchain"
	"github.com/atlas-inference/atlas/internal/version"
	"github.com/atlas-inference/atlas/targets"
)

// Exit codes.
const (
	exitOK        = 0
	exitFindings  = 1
	exitUsage     = 2
	exitNoCompile = 3
)

const description = `Compiles kernels for Atlas: manifests in, images and typed launch code out.

Exit codes: 0 done; 1 findings in the sources, or differences; 2 wrong usage; 3 a compiler is missing.`

type commands struct {
	Root  string `help:"Source tree, or a folder inside it." default:"." type:"path" placeholder:"DIR"`
	GCC   string `name:"gcc" help:"C compiler." default:"gcc" env:"ATLASC_GCC" placeholder:"CMD"`
	NVCC  string `name:"nvcc" help:"CUDA compiler (default: of CUDA_HOME, PATH, or what make cuda-toolchain installed)." env:"ATLASC_NVCC" placeholder:"CMD"`
	Cache string `help:"Folder of compiled kernels (default: in the user's cache folder)." env:"ATLASC_CACHE" type:"path" placeholder:"DIR"`

	Version kong.VersionFlag `help:"Print the version and stop."`

	Build   buildCommand   `cmd:"" help:"Generate code and compile what has changed."`
	Check   checkCommand   `cmd:"" help:"Fail if generated code differs from what build would write. Needs no compiler."`
	List    listCommand    `cmd:"" help:"List targets and the state of their images."`
	Explain explainCommand `cmd:"" help:"Show which kernel serves an operation, and which line of a manifest says so."`
	New     newCommand     `cmd:"" help:"Write what a new hardware or a new model begins with."`
	Inspect inspectCommand `cmd:"" help:"Show what an image holds."`
	Report  reportCommand  `cmd:"" help:"Write a page about a hardware: coverage, kernels, what they take, how fast they are."`
	Doctor  doctorCommand  `cmd:"" help:"Show which compilers are here and what they serve."`
	Test    testCommand    `cmd:"" help:"Compare kernels with the reference on this machine (runs bin/atlasrt)."`
	Bench   benchCommand   `cmd:"" help:"Measure kernels on this machine (runs bin/atlasrt)."`
	Tune    tuneCommand    `cmd:"" help:"Measure which kernel serves a shape best, and write it into the manifests (runs bin/atlasrt)."`
	Watch   watchCommand   `cmd:"" help:"Build whenever a source is saved."`
}

// environment is what commands need from outside.
type environment struct {
	ctx            context.Context
	stdout, stderr io.Writer
	terminal       bool // stderr is one, so progress is welcome
	root           string
	compilers      toolchain.Commands
	cache          string
}

// garbage is how much of it may lie around, in percent of what is used: a build ends before it matters.
const garbage = 800

func main() {
	debug.SetGCPercent(garbage)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	var c commands
	exited := false
	info, _ := debug.ReadBuildInfo() // nil where there is none
	parser, err := kong.New(&c, kong.Name("atlasc"), kong.Description(description), kong.Writers(stdout, stderr),
		kong.Vars{"version": version.Program("atlasc", info)}, kong.UsageOnError(), kong.Exit(func(n int) { exited, code = true, n }))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if exited {
		return code
	}
	if err != nil {
		fmt.Fprintf(stderr, "atlasc: %v\n", err)
		return exitUsage
	}
	env := &environment{ctx: ctx, stdout: stdout, stderr: stderr, root: c.Root, compilers: toolchain.Commands{GCC: c.GCC, NVCC: c.NVCC}, cache: c.Cache}
	if f, ok := stderr.(*os.File); ok {
		env.terminal = term.IsTerminal(int(f.Fd()))
	}
	return report(stderr, parsed.Run(env))
}

// usageError is a mistake on the command line.
type usageError struct{ error }

// exitError is the exit code of a program that atlasc ran, which has said why.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// report prints an error and returns the exit code that it stands for.
func report(stderr io.Writer, err error) int {
	var (
		list    diag.List
		failure *toolchain.Failure
		usage   usageError
		exit    exitError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &list), errors.As(err, &failure): // they name their places
		fmt.Fprintln(stderr, err)
		return exitFindings
	}
	fmt.Fprintf(stderr, "atlasc: %v\n", err)
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case toolchain.IsMissing(err):
		return exitNoCompile
	}
	return exitFindings
}

// cacheFolder is where compiled kernels are kept.
func (env *environment) cacheFolder() (string, error) {
	if env.cache != "" {
		return env.cache, nil
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache folder (pass --cache): %w", err)
	}
	return filepath.Join(user, "atlasc"), nil
}

// builder makes a Builder for a project.
func (env *environment) builder(p *project) (*toolchain.Builder, error) {
	dir, err := env.cacheFolder()
	if err != nil {
		return nil, err
	}
	return &toolchain.Builder{Root: p.root, CacheDir: dir, Parallel: runtime.NumCPU(), Sources: p.out.Sources, Reread: p.reread}, nil
}

// compiler finds the compiler of a hardware.
func (env *environment) compiler(p *project, h *targets.Hardware) (toolchain.Compiler, error) {
	return toolchain.Find(h, p.root, env.compilers)
}
