package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/grammar"
	"github.com/atlas-inference/atlas/atlasrt/internal/judge"
	"github.com/atlas-inference/atlas/internal/table"
)

// grammarCommand judges structured output by schemas with instances that are known to be valid or not.
type grammarCommand struct {
	Cases     string `required:"" type:"existingfile" help:"A file with a JSON object a line: name, schema, and tests, each with valid and data." placeholder:"FILE.jsonl"`
	Tokenizer string `required:"" type:"existingfile" help:"A tokenizer.json; its tokenizer_config.json is read where it lies beside." placeholder:"FILE"`
	Spaces    string `help:"White space that the grammar allows: ${enum}." enum:"compact,spaced,flexible" default:"compact"`
	Repeat    int    `help:"How often each schema is compiled and gone through; the least time of each mask counts." default:"1"`
	JSON      bool   `help:"Print JSON, with every time of every mask."`
}

// Validate bounds the number; kong calls it.
func (c *grammarCommand) Validate() error {
	if c.Repeat < 1 {
		return fmt.Errorf("--repeat is %d and must be at least 1", c.Repeat)
	}
	return nil
}

// grammarReport is what JSON holds.
type grammarReport struct {
	Schemas []*judge.Verdict `json:"schemas"`
	Summary []judge.Summary  `json:"summary"`
}

// Run implements the command. Instances that are judged wrongly are an error.
func (c *grammarCommand) Run() error {
	file, err := os.Open(c.Cases)
	if err != nil {
		return err
	}
	defer file.Close()
	cases, err := judge.Read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Cases, err)
	}
	tok, err := tokenizerFiles(c.Tokenizer)
	if err != nil {
		return err
	}
	j := &judge.Judge{Vocabulary: judge.NewVocabulary(tok), Tokenizer: tok, Notation: grammar.Notation(c.Spaces)}
	var r grammarReport
	for i := range cases {
		v, err := j.Try(&cases[i], c.Repeat)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Cases, err)
		}
		r.Schemas = append(r.Schemas, v)
	}
	r.Summary = judge.Summarise(r.Schemas)
	if c.JSON {
		err = json.NewEncoder(os.Stdout).Encode(r)
	} else {
		err = r.print(os.Stdout)
	}
	if all := r.Summary[len(r.Summary)-1]; err == nil && all.Stopped+all.Passed > 0 {
		err = fmt.Errorf("%s: %s stopped and %s passed", c.Cases, counted(all.Stopped, "valid instance"), counted(all.Passed, "invalid instance"))
	}
	return err
}

// print writes the report for people: what was refused, is not held or went wrong, and the summary.
func (r *grammarReport) print(w io.Writer) error {
	refused := table.New("refused schema", "keyword", "why")
	noted := table.New("schema", "not held")
	wrong := table.New("wrong instance of", "should be", "\tbyte", "before it, and from it on")
	for _, v := range r.Schemas {
		if v.Refused != nil {
			refused.Row(v.Name, v.Refused.Keyword, v.Refused.Path+" "+v.Refused.Reason)
		}
		for _, note := range v.Notes {
			noted.Row(v.Name, note)
		}
		for _, o := range v.Tests {
			if o.Valid != o.Accepted && !o.Order {
				wrong.Row(v.Name, map[bool]string{true: "accepted", false: "stopped"}[o.Valid], strconv.Itoa(o.Stopped), o.Around()+" "+o.Error)
			}
		}
	}
	counts := table.New("source", "\tschemas", "\trefused", "\tinstances", "\tvalid, stopped", "\tfor order alone", "\tinvalid, passed")
	times := table.New("source", "\tmasks", "\thalf µs", "\t99 % µs", "\tmost µs", "\tto a mask: half ms", "\t99 % ms", "\tmost ms")
	for _, s := range r.Summary {
		us := func(t judge.Microseconds) string { return fmt.Sprintf("%.1f", t) }
		ms := func(t judge.Microseconds) string { return fmt.Sprintf("%.2f", t/1e3) }
		counts.Row(s.Source, strconv.Itoa(s.Schemas), fmt.Sprintf("%.1f %%", s.Percent), strconv.Itoa(s.Instances), strconv.Itoa(s.Stopped),
			strconv.Itoa(s.Order), strconv.Itoa(s.Passed))
		times.Row(s.Source, strconv.Itoa(s.Masks.Count), us(s.Masks.Half), us(s.Masks.P99), us(s.Masks.Most), ms(s.Compile.Half), ms(s.Compile.P99), ms(s.Compile.Most))
	}
	for _, t := range []*table.Table{refused, noted, wrong, counts, times} {
		if t.Len() == 0 {
			continue
		}
		var text strings.Builder
		if err := t.Print(&text); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w, text.String()); err != nil {
			return err
		}
	}
	return nil
}
