package spec

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/podstead/podstead/internal/lazyregexp"
)

// format is the notation of a file. Hints are written in it.
type format int

const (
	formatTOML format = iota
	formatYAML
	formatJSON
)

// Stdin is the name of a file that is read from standard input. Its format is
// that of its content, and it has no default for the name of the pod.
const Stdin = "-"

var (
	jsonStart = lazyregexp.New(`^\s*\{`)
	yamlKey   = lazyregexp.New(`(?m)^(---|(apiVersion|kind|metadata|spec)[ \t]*:)`)
)

// Extension returns the file name extension for the format of a pod file.
func Extension(file string, data []byte) string {
	switch formatOf(file, data) {
	case formatJSON:
		return ".json"
	case formatYAML:
		return ".yaml"
	case formatTOML:
	}
	return ".toml"
}

// formatOf returns the format of a file, by its extension.
func formatOf(file string, data []byte) format {
	switch extension := filepath.Ext(file); {
	case extension == ".json":
		return formatJSON
	case extension == ".yaml" || extension == ".yml":
		return formatYAML
	case filepath.Base(file) != Stdin:
		return formatTOML
	case jsonStart.Match(data):
		return formatJSON
	case yamlKey.Match(data):
		return formatYAML
	}
	return formatTOML
}

// assign returns the line that sets a key. The value is in the notation of JSON.
func (f format) assign(key, value string) string {
	switch f { //nolint:exhaustive // TOML is the default
	case formatYAML:
		return printableKey(key) + ": " + value
	case formatJSON:
		return strconv.Quote(key) + ": " + value
	default:
		return printableKey(key) + " = " + value
	}
}

// word is assign for a value that needs no quotes in YAML.
func (f format) word(key, value string) string {
	if f == formatYAML {
		return f.assign(key, value)
	}
	return f.assign(key, strconv.Quote(value))
}

// pair is a field of a table: a string, a number or a boolean.
type pair struct {
	key   string
	value any
}

// table returns a table on one line; empty: it has no fields.
func (f format) table(pairs []pair) string {
	fields := make([]string, len(pairs))
	for i, p := range pairs {
		value := fmt.Sprint(p.value)
		if text, isString := p.value.(string); isString {
			value = strconv.Quote(text)
		}
		fields[i] = f.assign(p.key, value)
	}
	list := strings.Join(fields, ", ")
	switch {
	case list == "":
		return ""
	case f == formatTOML:
		return "{ " + list + " }"
	}
	return "{" + list + "}"
}
