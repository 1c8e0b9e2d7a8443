// Command atlasrt serves language models with kernels that were compiled for this machine ahead of time.
//
// This package is the only reader of flags, environment and configuration files, and the only one that links generated
// code and ends the process. Exit codes: 0 done, 1 the command failed or a server lost its device, 2 the command line makes no
// sense, 3 a signal stopped it before it was ready.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/hub"
)

// commands is the command line.
type commands struct {
	Config      kong.ConfigFlag `help:"TOML file with flag names as keys; flags and environment win." placeholder:"FILE"`
	PrintConfig bool            `help:"Print every setting with its value and where it came from, and stop."`

	Serve    serveCommand    `cmd:"" help:"Serve a model over HTTP."`
	Run      runCommand      `cmd:"" help:"Chat with a model in the terminal."`
	Plan     planCommand     `cmd:"" help:"Print what a model takes in memory, and what fits, without loading it."`
	Logits   logitsCommand   `cmd:"" help:"Write the logits of given tokens to a safetensors file."`
	Eval     evalCommand     `cmd:"" help:"Measure a model's perplexity on a text."`
	Bench    benchCommand    `cmd:"" help:"Measure prompt and decode rates."`
	Dummy    dummyCommand    `cmd:"" help:"Write a checkpoint of made-up weights."`
	Inspect  inspectCommand  `cmd:"" help:"List what a checkpoint holds."`
	Tokenize tokenizeCommand `cmd:"" help:"Turn strings into token ids."`
	Render   renderCommand   `cmd:"" help:"Print the exact prompt for a chat request."`
	Ops      opsCommand      `cmd:"" help:"Test or time the kernels of this machine by the reference."`
	Doctor   doctorCommand   `cmd:"" help:"Say what this machine can run and what is missing."`
}

func main() {
	var c commands
	parser, err := kong.New(&c, options()...)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	parsed, err := parser.Parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "atlasrt:", err)
		os.Exit(2)
	}
	if c.PrintConfig {
		printConfig(os.Stdout, parsed)
		if err := c.printSampled(context.Background(), os.Stdout, parsed.Selected().Name); err != nil {
			fmt.Fprintln(os.Stderr, "atlasrt:", err)
			os.Exit(1)
		}
		return
	}
	if err := parsed.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "atlasrt:", err)
		if errors.Is(err, context.Canceled) {
			os.Exit(3)
		}
		os.Exit(1)
	}
}

// options are how the command line is read: flag, then environment, then file, then default.
func options() []kong.Option {
	return []kong.Option{
		kong.Name("atlasrt"),
		kong.Description("Serves language models with kernels compiled ahead of time."),
		kong.DefaultEnvars("ATLASRT"),
		kong.Configuration(configFile),
		kong.Vars{"hub": hub.DefaultEndpoint},
	}
}
