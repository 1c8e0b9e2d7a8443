package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/dummy"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/hub"
	"github.com/atlas-inference/atlas/atlasrt/op"
	"github.com/atlas-inference/atlas/atlasrt/op/optest"
)

// hardwareFlags choose kernels.
type hardwareFlags struct {
	Hardware string `help:"Kernels to run, such as cpu-x86-64-v3; empty: the best that this machine can run."`
	Kernels  string `help:"Folder with HARDWARE/image.zst, in place of the kernels that the program carries; a server takes up what is built there while it runs." type:"existingdir"`
	Threads  int    `help:"Threads that run kernels; 0: one for each processor that the CPU quota keeps busy."`
	GPU      int    `name:"gpu" help:"Which GPU, counted from 0."`
	AMX      bool   `name:"amx" help:"On a CPU, use its matrix tiles for prompts: faster where it has them."`
	Exact    bool   `help:"A row's bits never depend on its batch, and on a CPU activations stay in f32: slower, for comparing."`
}

// hardware is what the flags choose from all that the program has kernels for.
func (f hardwareFlags) hardware() instance.Hardware {
	return instance.Hardware{Bundles: bundles(), Name: f.Hardware, Kernels: f.Kernels, Threads: f.Threads, GPU: f.GPU, Exact: f.Exact, AMX: f.AMX}
}

// open loads kernels, those for the model of a name where there are any.
func (f hardwareFlags) open(model string) (*instance.Target, error) {
	t, err := f.hardware().Open()
	if err != nil {
		return nil, err
	}
	return t.For(model), nil
}

// ask is open for commands that run nothing: hardware that is named need not be in this machine.
func (f hardwareFlags) ask(model string) (*instance.Target, error) {
	h := f.hardware()
	if f.Hardware == "" || h.Runs() {
		return f.open(model)
	}
	t, err := h.Ask()
	if err != nil {
		return nil, err
	}
	return t.For(model), nil
}

// modelFlags choose a checkpoint.
type modelFlags struct {
	Model     string `help:"A folder, a .gguf file, an owner/name id, or smollm2." default:"${model}"`
	Cache     string `help:"Folder that smollm2 was fetched into." default:".cache"`
	LoadDummy string `help:"Make deterministic weights for a config.json instead of reading a checkpoint." placeholder:"CONFIG.JSON"`
	DummyType string `help:"How dummy matrices are stored: ${enum}." enum:"bf16,q8_0,q4_0,q4_1,q5_0,q4_k,q4_k_m,q6_k,f8,f8block,nvfp4,nvfp4_all" default:"bf16"`
	HubCache  string `help:"HuggingFace cache; empty: the hub folder of --hub-home." env:"HF_HUB_CACHE"`
	HubHome   string `help:"HuggingFace home; empty: ~/.cache/huggingface." env:"HF_HOME"`
	HubURL    string `help:"Where owner/name ids are fetched from." default:"${hub}" env:"HF_ENDPOINT"`
	HubToken  string `help:"Token for the hub." env:"HF_TOKEN"`

	ChatTemplate string `aliases:"template" type:"existingfile" placeholder:"FILE.JINJA" help:"Template of conversations, in place of the checkpoint's."`
}

// smollm2 is where tools/testdata/smollm2.py puts the default model, below the cache folder.
const smollm2 = "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

// name is what the checkpoint is called; "" where it is made up.
func (f modelFlags) name() string {
	if f.LoadDummy != "" {
		return ""
	}
	return hub.Name(f.Model)
}

// path resolves the model to a file or folder, fetching it if need be.
func (f modelFlags) path(ctx context.Context, from reach) (string, error) {
	if f.Model == "smollm2" {
		path := filepath.Join(f.Cache, smollm2)
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("SmolLM2 is not in %s (run `make serve`, or `python3 tools/testdata/smollm2.py %s`)", f.Cache, f.Cache)
		}
		return path, nil
	}
	cache, err := f.hubFolder()
	if err != nil {
		return "", err
	}
	progress := newProgress(os.Stderr)
	defer progress.Wait()
	return hub.Resolve(ctx, f.Model, hub.Options{CacheDir: cache, Endpoint: f.HubURL, Token: f.HubToken, Progress: progress.Fetched, Offline: from == offline})
}

// hubFolder is the folder of the HuggingFace cache.
func (f modelFlags) hubFolder() (string, error) {
	if f.HubCache != "" {
		return f.HubCache, nil
	}
	home := f.HubHome
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no home folder for the HuggingFace cache (set --hub-cache): %w", err)
		}
		home = filepath.Join(user, ".cache", "huggingface")
	}
	return filepath.Join(home, "hub"), nil
}

// open opens the checkpoint that the flags name, or makes it up for a target.
func (f modelFlags) open(ctx context.Context, t *instance.Target) (weights.Checkpoint, error) {
	if f.LoadDummy == "" {
		return f.read(ctx, online)
	}
	config, options, err := f.dummy()
	if err != nil {
		return nil, err
	}
	return f.withTemplate(instance.Dummy(t, config, options))
}

// reach says where a checkpoint may come from.
type reach string

const (
	online  reach = "online"  // it is fetched if need be
	offline reach = "offline" // it must be here
)

// openText opens what a checkpoint has besides weights, which takes no target; one that is made up has no tensors then.
func (f modelFlags) openText(ctx context.Context, from reach) (weights.Checkpoint, error) {
	if f.LoadDummy == "" {
		return f.read(ctx, from)
	}
	config, options, err := f.dummy()
	if err != nil {
		return nil, err
	}
	return f.withTemplate(dummy.New(config, nil, options))
}

// read opens a checkpoint that is no dummy.
func (f modelFlags) read(ctx context.Context, from reach) (weights.Checkpoint, error) {
	path, err := f.path(ctx, from)
	if err != nil {
		return nil, err
	}
	return f.withTemplate(weights.Open(path))
}

// dummy reads the config that --load-dummy names, and how its weights are made up. Their text is bytes.
func (f modelFlags) dummy() (*weights.Config, dummy.Options, error) {
	text, err := os.ReadFile(f.LoadDummy)
	if err != nil {
		return nil, dummy.Options{}, fmt.Errorf("--load-dummy: %w", err)
	}
	config, err := weights.ParseConfig(f.LoadDummy, text)
	if err != nil {
		return nil, dummy.Options{}, err
	}
	options, err := dummy.Parse(f.DummyType)
	options.Text = true
	return config, options, err
}

// sizeFlags bound what is served at a time.
type sizeFlags struct {
	MaxContext     int    `help:"Most tokens of one sequence; 0: the model's, at most 32768."`
	MaxSequences   int    `help:"Most sequences at a time; 0: 64."`
	MaxBatchTokens int    `help:"Most rows of one step; 0: 512."`
	BlockSize      int    `help:"Tokens of a cache block; 0: 16."`
	KVType         string `help:"How keys and values are kept; auto is bf16, or f32 with --exact." enum:"auto,bf16,f32" default:"auto"`
	Memory         string `help:"Most memory in all, such as 8GiB; empty: nine tenths of what is free on the machine and in its control groups."`

	KeepActivations bool `help:"Never round activations to FP8. Without it steps of many rows do on an H200 where the checkpoint asks for it (FP8 blocks with dynamic activations), unless --exact is given."`
}

func (f sizeFlags) sizes(exact bool) (instance.Sizes, error) {
	s := instance.Sizes{MaxContext: f.MaxContext, MaxSequences: f.MaxSequences, MaxBatchTokens: f.MaxBatchTokens, BlockSize: f.BlockSize, KVType: op.BF16, KeepActivations: f.KeepActivations}
	if f.KVType == "f32" || f.KVType == "auto" && exact {
		s.KVType = op.F32
	}
	var err error
	s.Memory, err = parseBytes("--memory", f.Memory)
	return s, err
}

// parseBytes reads a flag's "8GiB", "512MiB" or plain bytes.
func parseBytes(flag, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	number, unit := text, int64(1)
	for suffix, size := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			number, unit = rest, size
		}
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(n > 0 && n*float64(unit) < 1<<62) {
		return 0, fmt.Errorf("%s %q is no size (write it as 8GiB, 512MiB or a number of bytes)", flag, text)
	}
	return int64(n * float64(unit)), nil
}

// formatBytes writes a size the way people read it.
func formatBytes(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

// loadFlags are what every command that runs a model takes.
type loadFlags struct {
	hardwareFlags
	modelFlags
	sizeFlags
	RecordShapes string `help:"Keep the sizes of all calls in a file, for atlasc tune." type:"path" placeholder:"FILE.JSON"`
}

// prepare opens target and checkpoint and measures the model, with what drafts for it.
func (f loadFlags) prepare(ctx context.Context, d drafting) (*instance.Prepared, error) {
	target, err := f.hardwareFlags.open(f.name())
	if err != nil {
		return nil, err
	}
	if f.RecordShapes != "" {
		recorder, err := optest.NewRecorder(f.RecordShapes)
		if err != nil {
			return nil, errors.Join(err, target.Device.Close())
		}
		target.Set = recorder.Watch(target.Set)
	}
	return f.prepareOn(ctx, target, d)
}

// prepareOn is prepare for a target that is open.
func (f loadFlags) prepareOn(ctx context.Context, target *instance.Target, d drafting) (*instance.Prepared, error) {
	sizes, err := f.sizes(f.Exact)
	if err != nil {
		return nil, err
	}
	sizes = d.set(sizes)
	checkpoint, err := f.modelFlags.open(ctx, target)
	if err != nil {
		return nil, err
	}
	return instance.Prepare(target, checkpoint, sizes)
}

// load prepares and loads, and says on standard error what a user should know.
func (f loadFlags) load(ctx context.Context, log *slog.Logger, d drafting) (*instance.Loaded, error) {
	p, err := f.prepare(ctx, d)
	if err != nil {
		return nil, err
	}
	announce(log, p)
	return loadShown(ctx, p)
}

// loadShown loads, with a bar on a terminal.
func loadShown(ctx context.Context, p *instance.Prepared) (*instance.Loaded, error) {
	shown := newProgress(os.Stderr)
	defer shown.Wait()
	p.Progress = shown.Loaded
	return p.Load(ctx)
}

// announce says what a user should know about a checkpoint that is about to be loaded.
func announce(log *slog.Logger, p *instance.Prepared) {
	for _, line := range slices.Concat(p.Checkpoint.Notes(), p.Assumed()) {
		log.Warn(line)
	}
	for _, line := range slices.Concat(p.Unread(), p.Counter.Converted(), p.Quantised()) {
		log.Info(line)
	}
}
