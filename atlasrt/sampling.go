package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/internal/table"
	"github.com/atlas-inference/atlas/targets"
)

// text reads how a checkpoint's model reads and writes, logs what its files leave open, and finds the preset of its sampling.
func (f modelFlags) text(c weights.Checkpoint, log *slog.Logger) (*instance.Text, error) {
	text, err := instance.OpenText(c)
	if err != nil {
		return nil, err
	}
	for _, line := range text.Notes {
		log.Warn(line)
	}
	for _, line := range text.Details {
		log.Info(line)
	}
	text.Preset, err = f.preset(c, text, log)
	return text, err
}

// preset finds the one preset that is about a checkpoint; none where several may be.
func (f modelFlags) preset(c weights.Checkpoint, text *instance.Text, log *slog.Logger) (instance.Preset, error) {
	models, err := targets.Models(targets.Embedded())
	if err != nil {
		return instance.Preset{}, err
	}
	config := c.Config()
	id := targets.Identity{Architecture: config.StringOr("model_type", ""), Names: []string{f.name(), text.Name}, Template: text.Source}
	if err := config.Err(); err != nil {
		return instance.Preset{}, err
	}
	found := targets.Matching(models, id)
	if len(found) > 1 {
		var names []string
		for _, m := range found {
			names = append(names, m.Name)
		}
		log.Warn("several presets of sampling may be meant, and none is used", "presets", strings.Join(names, " "), "names", strings.Join(id.Names, ", "))
	}
	if len(found) != 1 {
		return instance.Preset{}, nil
	}
	s := found[0].Sampling
	return instance.Preset{Name: found[0].Name, Defaults: instance.Defaults{
		Temperature: narrow[float32](s.Temperature), TopP: narrow[float32](s.TopP), TopK: narrow[int32](s.TopK),
		MinP: narrow[float32](s.MinP), RepetitionPenalty: narrow[float32](s.RepetitionPenalty),
	}}, nil
}

// narrow keeps what is absent absent.
func narrow[To, From float32 | float64 | int32 | int64](value *From) *To {
	if value == nil {
		return nil
	}
	narrowed := To(*value)
	return &narrowed
}

// printSampling shows how tokens are drawn where a request says nothing, and where each value comes from.
func printSampling(w io.Writer, settings []instance.Setting) error {
	t := table.New("sampling", "value", "from")
	for _, s := range settings {
		t.Row(s.Name, s.Value, s.From)
	}
	return t.Print(w)
}

// logSampling logs the same in one line where a preset has a say in it: the checkpoint does not state it.
func logSampling(log *slog.Logger, text *instance.Text) {
	if text.Preset.Name == "" {
		return
	}
	var values []string
	for _, s := range text.Sampling() {
		values = append(values, s.Name+" "+s.Value)
	}
	log.Info("where requests and the checkpoint say nothing, sampling is as the model's publisher recommends", "preset", text.Preset.Name, "values", strings.Join(values, ", "))
}

// printSampled shows the sampling of a command that draws tokens, of a checkpoint that is here: nothing is fetched to print it.
func (c *commands) printSampled(ctx context.Context, w io.Writer, command string) error {
	var flags modelFlags
	var given *float32
	switch command {
	case "serve":
		flags = c.Serve.modelFlags
	case "run":
		flags, given = c.Run.modelFlags, c.Run.Temperature
	default:
		return nil
	}
	checkpoint, err := flags.openText(ctx, offline)
	var text *instance.Text
	if err == nil {
		defer checkpoint.Close()
		text, err = flags.text(checkpoint, slog.Default())
	}
	if err != nil {
		_, err = fmt.Fprintf(w, "sampling is not known before the model is: %v\n", err)
		return err
	}
	settings := text.Sampling()
	if given != nil {
		settings[0] = instance.Setting{Name: settings[0].Name, Value: fmt.Sprint(*given), From: "flag"}
	}
	return printSampling(w, settings)
}
