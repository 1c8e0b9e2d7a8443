// Command atlasrt serves language models with kernels that were compiled for this machine ahead of time.
//
// This package is the only reader of flags, environment and configuration files, and the only one that links generated
// code and ends the process. Exit codes: 0 done, 1 the command failed or a server lost its device, 2 the command line makes no
// sense, 3 a signal stopped it before it was ready.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/hub"
	"github.com/atlas-inference/atlas/internal/version"
)

// commands is the command line.
type commands struct {
	Config      kong.ConfigFlag  `help:"TOML file with flag names as keys; flags and environment win." placeholder:"FILE"`
	PrintConfig bool             `help:"Print every setting with its value and where it came from, and stop."`
	Version     kong.VersionFlag `env:"-" help:"Print the version and which hardware the program has kernels for, and stop."`

	Serve    serveCommand    `cmd:"" help:"Serve a model over HTTP."`
	Run      runCommand      `cmd:"" help:"Chat with a model in the terminal."`
	List     listCommand     `cmd:"" help:"List the models on this machine, and whether they fit."`
	Plan     planCommand     `cmd:"" help:"Print what a model takes in memory, and what fits, without loading it."`
	Logits   logitsCommand   `cmd:"" help:"Write the logits of given tokens to a safetensors file."`
	Eval     evalCommand     `cmd:"" help:"Measure a model's perplexity on a text."`
	Bench    benchCommand    `cmd:"" help:"Measure prompt and decode rates."`
	Dummy    dummyCommand    `cmd:"" help:"Write a checkpoint of made-up weights."`
	Calls    callsCommand    `cmd:"" help:"List what a step of a model calls, on any hardware that the program has kernels for."`
	Inspect  inspectCommand  `cmd:"" help:"List what a checkpoint holds."`
	Tokenize tokenizeCommand `cmd:"" help:"Turn strings into token ids."`
	Parse    parseCommand    `cmd:"" help:"Print what is found in an answer of a model: its thoughts, its text and its calls of tools."`
	Render   renderCommand   `cmd:"" help:"Print the exact prompt for a chat request."`
	Grammar  grammarCommand  `cmd:"" help:"Judge structured output by JSON schemas and instances of them."`
	Ops      opsCommand      `cmd:"" help:"Test or time the kernels of this machine by the reference."`
	Doctor   doctorCommand   `cmd:"" help:"Say what this machine can run and what is missing."`
}

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// execute runs one command line and returns the exit code. A command line without a command asks for help, as with other tools of the
// kind: it is no mistake.
func execute(args []string, stdout, stderr io.Writer) (code int) {
	if len(args) == 0 {
		args = []string{"--help"}
	}
	var c commands
	exited := false
	parser, err := kong.New(&c, append(options(), kong.Writers(stdout, stderr), kong.Exit(func(n int) {
		if !exited { // kong goes on, and would end it a second time
			exited, code = true, n
		}
	}))...)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	parsed, err := parser.Parse(args)
	if exited {
		return code
	}
	if err != nil {
		fmt.Fprintln(stderr, "atlasrt:", err)
		return 2
	}
	if c.PrintConfig {
		err = errors.Join(printConfig(stdout, parsed), c.printSampled(context.Background(), stdout, parsed.Selected().Name))
	} else {
		err = parsed.Run()
	}
	if err != nil {
		fmt.Fprintln(stderr, "atlasrt:", err)
		if errors.Is(err, context.Canceled) && !c.PrintConfig {
			return 3
		}
		return 1
	}
	return 0
}

// options are how the command line is read: flag, then environment, then file, then default.
func options() []kong.Option {
	return []kong.Option{
		kong.Name("atlasrt"),
		kong.Description("Serves language models with kernels compiled ahead of time."),
		kong.DefaultEnvars("ATLASRT"),
		kong.Configuration(configFile),
		kong.Vars{"hub": hub.DefaultEndpoint, "model": "smollm2", "version": versionText()},
		formatNames(),
	}
}

// versionText is what --version prints.
func versionText() string {
	info, _ := debug.ReadBuildInfo() // nil where there is none
	var hardware []string
	for _, b := range bundles() {
		if b.Built() {
			hardware = append(hardware, b.Hardware)
		}
	}
	return version.Program("atlasrt", info) + "\nkernels: " + cmp.Or(strings.Join(hardware, ", "), "none (run make build)")
}
