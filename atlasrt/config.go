package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/alecthomas/kong"

	"github.com/atlas-inference/atlas/internal/table"
)

// configFile reads a TOML file whose keys are flag names, at the top for all commands or in a table named like one. The
// order of precedence is flag, environment, file, default.
func configFile(r io.Reader) (kong.Resolver, error) {
	var values map[string]any
	if _, err := toml.NewDecoder(r).Decode(&values); err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	return &tomlResolver{values}, nil
}

type tomlResolver struct{ values map[string]any }

// Resolve implements kong.Resolver. kong asks resolvers even where the environment has a value, so that is left to it.
func (r *tomlResolver) Resolve(context *kong.Context, parent *kong.Path, flag *kong.Flag) (any, error) {
	if fromEnvironment(flag) {
		return nil, nil
	}
	names := append([]string{flag.Name}, flag.Aliases...)
	if node := parent.Node(); node != nil {
		if table, ok := r.values[node.Name].(map[string]any); ok {
			for _, name := range names {
				if v, ok := table[name]; ok {
					return flagValue(v)
				}
			}
		}
	}
	for _, name := range names {
		isCommand := slices.ContainsFunc(context.Model.Children, func(command *kong.Node) bool { return command.Name == name })
		if v, ok := r.values[name]; ok && !isCommand {
			return flagValue(v)
		}
	}
	return nil, nil
}

// flagValue is a value as a flag has it: a table is a JSON object.
func flagValue(value any) (any, error) {
	if table, ok := value.(map[string]any); ok {
		text, err := json.Marshal(table)
		return string(text), err
	}
	return value, nil
}

// Validate implements kong.Resolver: a key that no command knows is a mistake.
func (r *tomlResolver) Validate(app *kong.Application) error {
	known := map[string]bool{}
	for _, flag := range app.Flags {
		known[flag.Name] = true
	}
	tables := map[string]map[string]bool{}
	for _, command := range app.Children {
		tables[command.Name] = map[string]bool{}
		for _, flag := range command.Flags {
			for _, name := range append([]string{flag.Name}, flag.Aliases...) {
				known[name] = true
				tables[command.Name][name] = true
			}
		}
	}
	var unknown []string
	for key, value := range r.values {
		table, isTable := value.(map[string]any)
		flags, isCommand := tables[key]
		if !isTable || !isCommand {
			if !known[key] {
				unknown = append(unknown, key)
			}
			continue
		}
		for inner := range table {
			if !flags[inner] {
				unknown = append(unknown, key+"."+inner)
			}
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return fmt.Errorf("the configuration file sets what no command knows: %s (keys are flag names without dashes in front)", strings.Join(unknown, ", "))
	}
	return nil
}

func fromEnvironment(flag *kong.Flag) bool {
	return slices.ContainsFunc(flag.Envs, func(name string) bool {
		_, ok := os.LookupEnv(name)
		return ok
	})
}

// shown is a flag's value, empty where there is none; one that may be unset is a pointer.
func shown(value any) string {
	switch v := reflect.ValueOf(value); {
	case v.Kind() == reflect.Pointer && v.IsNil(), v.Kind() == reflect.Slice && v.Len() == 0:
		return ""
	case v.Kind() == reflect.Pointer:
		value = v.Elem()
	}
	return fmt.Sprint(value)
}

// secrets are the flags whose values are not printed.
var secrets = []string{"api-key", "hub-token"}

// printConfig shows each setting of the chosen command, its value and where that came from. Keys are not shown.
func printConfig(w io.Writer, context *kong.Context) error {
	given := map[*kong.Flag]string{}
	for _, step := range context.Path {
		if step.Flag != nil {
			given[step.Flag] = "flag"
			if step.Resolved {
				given[step.Flag] = "file"
			}
		}
	}
	t := table.New("setting", "value", "from")
	for _, flag := range context.Flags() {
		if slices.Contains([]string{"help", "print-config", "version"}, flag.Name) {
			continue
		}
		from := given[flag]
		if from == "" {
			from = "default"
			if fromEnvironment(flag) {
				from = "environment"
			}
		}
		value := shown(context.FlagValue(flag))
		if value != "" && slices.Contains(secrets, flag.Name) {
			value = "(set)"
		}
		t.Row(flag.Name, value, from)
	}
	return t.Print(w)
}
