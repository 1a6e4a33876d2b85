package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/podstead/podstead/api"
)

// eventFields are the fields of get events --field-selector.
var eventFields = map[string]func(e *api.Event) string{
	"type":                     func(e *api.Event) string { return string(e.Level) },
	"reason":                   func(e *api.Event) string { return e.Reason },
	"involvedObject.kind":      func(*api.Event) string { return "Pod" },
	"involvedObject.name":      func(e *api.Event) string { return e.Pod },
	"involvedObject.namespace": func(*api.Event) string { return namespace },
	"metadata.namespace":       func(*api.Event) string { return namespace },
}

// eventTimes are the paths of get events --sort-by: all are the time of an event, which is the order of events.
var eventTimes = []string{"metadata.creationTimestamp", "lastTimestamp", "firstTimestamp", "eventTime"}

// isEvents reports whether the arguments of get are the resource type of events.
func isEvents(args []string) bool {
	return len(args) > 0 && slices.Contains([]string{"events", "event", "ev"}, args[0])
}

// getEvents is get events, with the flags of get that kubectl users combine with it.
func (a *app) getEvents(cmd *cobra.Command, args []string, f *getFlags) error {
	if len(args) > 1 {
		return usage(cmd, "get events accepts no names, got %q: select the events of a pod with --field-selector involvedObject.name=%s", args[1], args[1])
	}
	if f.format != "" && f.format != "wide" && f.format != "json" && f.format != "yaml" {
		return usage(cmd, "get events: output format %q is not supported: must be one of wide, json, yaml", f.format)
	}
	if path := strings.TrimPrefix(strings.Trim(f.sortBy, "{}"), "."); f.sortBy != "" && !slices.Contains(eventTimes, path) {
		return usage(cmd, "get events --sort-by %q: events are sorted by time: must be one of .%s", f.sortBy, strings.Join(eventTimes, ", ."))
	}
	e := eventsFlags{follow: f.watch, format: f.format}
	e.labels = f.labels
	if f.fields.text != "" {
		selector, err := fields.ParseSelector(f.fields.text)
		if err != nil {
			return usage(cmd, "--field-selector %q: %w", f.fields.text, err)
		}
		for _, r := range selector.Requirements() {
			if eventFields[r.Field] == nil {
				return usage(cmd, "--field-selector %q: field %q of events is not supported: must be type, reason or involvedObject.name", f.fields.text, r.Field)
			}
		}
		e.fieldSelector = selector
	}
	return a.queryEvents(cmd, nil, &e)
}

// has reports whether the flags --types and --field-selector select an event.
func (f *eventsFlags) has(e *api.Event) bool {
	if len(f.types) > 0 && !slices.ContainsFunc(f.types, func(t string) bool { return strings.EqualFold(t, string(e.Level)) }) {
		return false
	}
	if f.fieldSelector == nil {
		return true
	}
	set := fields.Set{}
	for name, value := range eventFields {
		set[name] = value(e)
	}
	return f.fieldSelector.Matches(set)
}

// habitFlags adds the flags of kubectl events.
func (f *eventsFlags) habitFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.follow, "watch", "w", false, "as --follow")
	cmd.Flags().StringVar(&f.object, "for", "", "show only the events of this `pod`, as web or pod/web")
	cmd.Flags().StringSliceVar(&f.types, "types", nil, "show only events of these `types`: Normal, Warning (default all)")
	_ = cmd.RegisterFlagCompletionFunc("types", func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return startingWith(prefix, "Normal", "Warning")
	})
	f.namespacesFlag(cmd)
}

// checkHabits checks --types, and adds the pod of --for to the arguments.
func (f *eventsFlags) checkHabits(cmd *cobra.Command, args []string) ([]string, error) {
	for _, t := range f.types {
		if !strings.EqualFold(t, "Normal") && !strings.EqualFold(t, "Warning") {
			return nil, usage(cmd, "--types %q: must be Normal or Warning", t)
		}
	}
	switch {
	case f.object == "":
		return args, nil
	case len(args) > 0:
		return nil, usage(cmd, "--for cannot be combined with a pod")
	}
	return []string{f.object}, nil
}
