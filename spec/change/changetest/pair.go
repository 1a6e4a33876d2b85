// Package changetest provides pairs of pod files for tests of changes: for every field of a pod file, two files that differ in it, with the
// effect of the change.
package changetest

import (
	"slices"
	"strings"
	"sync"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/spec/change"
)

// Pair is two pod files that differ in one field.
type Pair struct {
	// Field is the path without indexes, such as "containers[].image".
	Field string
	// Before and After are pod files in TOML of the same pod. Except where Field is "name", its name is "pair".
	Before, After string
	// Effect is the largest effect of the change from Before to After.
	Effect change.Effect
	// Files are the files that both pod files need in their directory, by name.
	Files map[string]string
	// Runs means that both can run on every host of the tests, with the image [Image]. Their containers keep running, except init
	// containers, but do not always become ready. They include "app", except after a change of containers[].name, and "other".
	Runs bool
}

// Image is the image of all containers, except where the field of a pair is an image.
const Image = "localhost/podstead/busybox:1"

// Pairs returns at least one pair for each effect of each field. There are none for fields that are not supported yet, and for fields that
// have only one valid value.
func Pairs() []Pair { return slices.Clone(supported()) }

var supported = sync.OnceValue(func() []Pair {
	return slices.DeleteFunc(all(), func(p Pair) bool {
		return isUnsupported(p.Before) || isUnsupported(p.After)
	})
})

// Fields returns the fields of all pairs, including those of fields that are not supported yet.
func Fields() []string {
	var fields []string
	for _, p := range all() {
		fields = append(fields, p.Field)
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

func isUnsupported(text string) bool {
	_, problems := spec.Parse("pair.toml", []byte(text))
	return slices.ContainsFunc(problems, func(p spec.Problem) bool { return strings.HasPrefix(p.Message, "not supported: ") })
}

// template is a pair in short form. %s in its lines stands for the value before and after.
type template struct {
	field string
	// pod are lines of the pod, app of the container app. tables follow all containers.
	pod, app, tables string
	before, after    string
	effect           change.Effect
	files            map[string]string
	fails            bool // does not run on every host
}

// all returns all pairs.
func all() []Pair {
	var pairs []Pair
	for _, t := range slices.Concat(podTemplates(), containerTemplates(), environmentTemplates(), securityTemplates(), handlerTemplates(),
		volumeTemplates(), configTemplates()) {
		pairs = append(pairs, Pair{
			Field: t.field, Before: t.text(t.before), After: t.text(t.after), Effect: t.effect, Files: t.files, Runs: !t.fails,
		})
	}
	return pairs
}

// text returns the pod file with a value.
func (t template) text(value string) string {
	var b strings.Builder
	write := func(lines string, defaults ...string) {
		lines = strings.ReplaceAll(lines, "%s", value)
		for _, line := range defaults {
			key, _, _ := strings.Cut(line, " ")
			if !strings.Contains("\n"+lines, "\n"+key+" = ") {
				b.WriteString(line + "\n")
			}
		}
		if lines != "" {
			b.WriteString(lines + "\n")
		}
	}
	const image, command = `image = "` + Image + `"`, `command = ["sleep", "3600"]`
	write(t.pod, `name = "pair"`, "terminationGracePeriodSeconds = 1")
	b.WriteString("\n[[containers]]\n")
	write(t.app, `name = "app"`, image, command)
	b.WriteString("\n[[containers]]\n")
	write("", `name = "other"`, image, command)
	if t.tables != "" {
		b.WriteString("\n")
		write(t.tables)
	}
	return b.String()
}
