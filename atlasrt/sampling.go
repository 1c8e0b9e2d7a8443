package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/instance"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/internal/table"
	"github.com/atlas-inference/atlas/targets"
)

// preset is what is known of a checkpoint's model by its names; nothing where several models may be meant.
func (f modelFlags) preset(c weights.Checkpoint, text *instance.Text, log *slog.Logger) ([]instance.Facts, error) {
	models, err := targets.Models(targets.Embedded())
	if err != nil {
		return nil, err
	}
	config := c.Config()
	id := targets.Identity{Architecture: config.StringOr("model_type", ""), Names: []string{f.name(), text.Name}, Template: text.Source}
	if err := config.Err(); err != nil {
		return nil, err
	}
	found := targets.Matching(models, id)
	if len(found) > 1 {
		var names []string
		for _, m := range found {
			names = append(names, m.Name)
		}
		log.Warn("several presets may be meant, and none is used", "presets", strings.Join(names, " "), "names", strings.Join(id.Names, ", "))
	}
	if len(found) != 1 {
		return nil, nil
	}
	return []instance.Facts{facts(found[0], "preset "+found[0].Name)}, nil
}

// printAnswers shows how conversations are answered and how tokens are drawn where a request says nothing.
func printAnswers(w io.Writer, text *instance.Text, sampling []instance.Setting) error {
	err := printSettings(w, "sampling", sampling)
	for _, more := range []struct {
		title    string
		settings []instance.Setting
	}{{"sampling without thoughts", text.PlainSampling()}, {"conversations", text.Answers()}} {
		if more.settings != nil {
			_, printed := fmt.Fprintln(w)
			err = errors.Join(err, printed, printSettings(w, more.title, more.settings))
		}
	}
	return err
}

// printSettings shows values and where each comes from.
func printSettings(w io.Writer, title string, settings []instance.Setting) error {
	t := table.New(title, "value", "from")
	for _, s := range settings {
		t.Row(s.Name, s.Value, s.From)
	}
	return t.Print(w)
}

// logAnswers logs the same in a line each, and what a user who expects otherwise should know.
func logAnswers(log *slog.Logger, text *instance.Text) {
	line := func(what string, settings []instance.Setting) {
		var values []any
		for _, s := range settings {
			if s.From != "default" {
				values = append(values, strings.ReplaceAll(s.Name, " ", "_"), fmt.Sprintf("%s (%s)", s.Value, s.From))
			}
		}
		if values != nil {
			log.Info(what, values...)
		}
	}
	line("where requests say nothing, tokens are drawn so", text.Sampling())
	line("where requests say nothing and there are no thoughts, tokens are drawn so", text.PlainSampling())
	if text.Template == nil {
		return
	}
	line("conversations are answered so", text.Answers())
	if text.Tools.Value == instance.NoFormat && text.Tools.From == "default" {
		log.Info("calls of tools are not looked for: no format of theirs is known for this model (--tool-call-parser sets one)")
	}
}

// printSampled shows the sampling of a command that draws tokens, of a checkpoint that is here: nothing is fetched to print it.
func (c *commands) printSampled(ctx context.Context, w io.Writer, command string) error {
	var flags modelFlags
	var answers answerFlags
	var given *float32
	switch command {
	case "serve":
		flags, answers = c.Serve.modelFlags, c.Serve.answerFlags
	case "run":
		flags, answers, given = c.Run.modelFlags, c.Run.answerFlags, c.Run.Temperature
	default:
		return nil
	}
	checkpoint, err := flags.openText(ctx, offline)
	var text *instance.Text
	if err == nil {
		defer checkpoint.Close()
		text, err = answers.text(flags, checkpoint, slog.Default())
	}
	if err != nil {
		_, err = fmt.Fprintf(w, "how answers are made is not known before the model is: %v\n", err)
		return err
	}
	settings := text.Sampling()
	if given != nil {
		settings[0] = instance.Setting{Name: settings[0].Name, Value: fmt.Sprint(*given), From: "flag"}
	}
	return printAnswers(w, text, settings)
}
