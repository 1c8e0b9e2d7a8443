package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// newCommand writes what a new hardware or a new model begins with.
type newCommand struct {
	Hardware string `help:"Name of a new hardware: writes targets/hardware/NAME.toml and a base manifest for each weight scheme of --from." placeholder:"NAME"`
	From     string `help:"Hardware that the new one resembles most." placeholder:"NAME"`
	Include  bool   `help:"Begin with all kernels of --from, instead of none."`

	Config string `help:"config.json of a model: writes manifests with an entry for each of its shapes." type:"existingfile" placeholder:"FILE"`
	HW     string `name:"hw" help:"Hardware of the model's manifests." placeholder:"NAME"`
	Quant  string `help:"Weight scheme of the model's matrices." placeholder:"SCHEME"`
	Model  string `help:"Folder of the model's manifests (default: the name of config.json's folder)." placeholder:"NAME"`

	Batch   int64 `help:"Sequences that decode at a time: what serves them gets entries." default:"1" placeholder:"N"`
	Context int64 `help:"Tokens of each." default:"1024" placeholder:"N"`
	Prompt  int64 `help:"Tokens of a prompt: what serves it gets entries, too." default:"512" placeholder:"N"`
}

// Help explains both forms; kong prints it.
func (*newCommand) Help() string {
	return `New hardware:  atlasc new --hardware cpu-mine --from cpu-x86-64-v3 --include
New model:     atlasc new --config qwen3-8b/config.json --hw h200 --quant bf16

No file is overwritten. docs/BRINGUP.md tells what to do next.`
}

// Validate checks that the flags of one form are there; kong calls it.
func (c *newCommand) Validate() error {
	hardware := c.Hardware != "" || c.From != "" || c.Include
	model := c.Config != "" || c.HW != "" || c.Quant != "" || c.Model != ""
	switch {
	case hardware == model:
		return errors.New("give --hardware and --from, or --config, --hw and --quant")
	case hardware && (c.Hardware == "" || c.From == ""):
		return errors.New("--hardware and --from go together")
	case model && (c.Config == "" || c.HW == "" || c.Quant == ""):
		return errors.New("--config, --hw and --quant go together")
	}
	return errors.Join(bound("--batch", c.Batch), bound("--context", c.Context), bound("--prompt", c.Prompt))
}

func (c *newCommand) Run(env *environment) error {
	if c.Hardware != "" {
		return c.newHardware(env)
	}
	return c.newModel(env)
}

// file is one that a command writes.
type file struct{ name, text string } // name: from the root, with slashes

// create writes files that must not exist yet: all of them, or none where one exists.
func (env *environment) create(root string, files []file) error {
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(root, filepath.FromSlash(f.name))); err == nil {
			return fmt.Errorf("%s exists already (edit it, or remove it first)", f.name)
		}
	}
	for _, f := range files {
		path := filepath.Join(root, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
		if err := os.WriteFile(path, []byte(f.text), 0o666); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
		fmt.Fprintf(env.stdout, "wrote %s\n", f.name)
	}
	return nil
}
