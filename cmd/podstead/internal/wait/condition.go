package wait

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/cmd/podstead/internal/show"
)

// Kind is what pods wait for.
type Kind int

// The kinds.
const (
	ForState   Kind = iota // a state of the pod that exists
	ForCreated             // the pod exists
	ForDeleted             // the pod does not exist
)

// Condition is a condition for pods. It is safe for concurrent use.
type Condition struct {
	Kind  Kind
	met   func(*api.Pod) (bool, error) // of the kind ForState
	ready bool                         // the pod is to become ready: it cannot if it is rolled back
}

// Phases are the phases that a condition can have.
var Phases = []api.Phase{
	api.PhasePending, api.PhaseRunning, api.PhaseSucceeded, api.PhaseFailed, api.PhaseUnknown,
}

// ParseCondition parses a condition in the forms of kubectl: condition=NAME[=VALUE], jsonpath=EXPRESSION[=VALUE], create and delete. It
// also accepts phase=PHASE. Names and values of conditions have no case.
func ParseCondition(text string) (*Condition, error) {
	switch strings.ToLower(text) {
	case "create":
		return &Condition{Kind: ForCreated}, nil
	case "delete":
		return &Condition{Kind: ForDeleted}, nil
	}
	form, value, _ := strings.Cut(text, "=")
	var met func(*api.Pod) (bool, error)
	err := errUnknownForm
	switch form {
	case "condition":
		met, err = parseStatus(value)
	case "phase":
		met, err = parsePhase(value)
	case "jsonpath":
		met, err = parsePath(value)
	}
	if err != nil {
		return nil, fmt.Errorf("unrecognized condition: %q: %w", text, err)
	}
	return &Condition{met: met, ready: form == "condition" && isReady(value)}, nil
}

var errUnknownForm = errors.New("must be condition=NAME, condition=NAME=VALUE, phase=PHASE, jsonpath=EXPRESSION, " +
	"jsonpath=EXPRESSION=VALUE, create or delete")

// parseStatus parses NAME or NAME=VALUE, a condition of the pod and its status.
func parseStatus(text string) (func(*api.Pod) (bool, error), error) {
	name, value, hasValue := strings.Cut(text, "=")
	if !hasValue {
		value = "True"
	}
	if name == "" || value == "" {
		return nil, errUnknownForm
	}
	return func(p *api.Pod) (bool, error) {
		i := slices.IndexFunc(p.Status.Conditions, func(c api.Condition) bool { return strings.EqualFold(string(c.Type), name) })
		met := i >= 0 && strings.EqualFold(p.Status.Conditions[i].Status, value)
		if met && p.Status.Conditions[i].Type == api.PodReady && p.Status.Conditions[i].Status == "True" {
			met = complete(p) // as --wait of other commands
		}
		return met, nil
	}, nil
}

// isReady reports whether NAME or NAME=VALUE is that the pod is ready.
func isReady(text string) bool {
	name, value, hasValue := strings.Cut(text, "=")
	return strings.EqualFold(name, string(api.PodReady)) && (!hasValue || strings.EqualFold(value, "True"))
}

func parsePhase(text string) (func(*api.Pod) (bool, error), error) {
	i := slices.IndexFunc(Phases, func(p api.Phase) bool { return strings.EqualFold(string(p), text) })
	if i < 0 {
		return nil, fmt.Errorf("the phase must be one of %s", joined(Phases))
	}
	return func(p *api.Pod) (bool, error) { return p.Status.Phase == Phases[i], nil }, nil
}

func joined(phases []api.Phase) string {
	list := make([]string, len(phases))
	for i, p := range phases {
		list[i] = string(p)
	}
	return strings.Join(list, ", ")
}

// parsePath parses EXPRESSION or EXPRESSION=VALUE. Without a value, the pod must have a value for the expression.
func parsePath(text string) (func(*api.Pod) (bool, error), error) {
	expression, value, hasValue, err := splitPath(text)
	if err != nil {
		return nil, err
	}
	path, err := show.ParsePath(expression)
	if err != nil {
		return nil, err
	}
	return func(p *api.Pod) (bool, error) {
		object, err := show.Object(p)
		if err != nil {
			return false, err
		}
		values, err := path.Values(object)
		switch {
		case err != nil || len(values) == 0:
			return false, err
		case len(values) > 1:
			return false, fmt.Errorf("expression %q: matches more than one value", path)
		case !hasValue:
			return true, nil
		}
		switch values[0].(type) {
		case map[string]any, []any:
			return false, fmt.Errorf("expression %q: is an object or a list, which cannot be compared with a value", path)
		}
		return strings.TrimSpace(fmt.Sprint(values[0])) == value, nil
	}, nil
}

// splitPath splits EXPRESSION=VALUE as kubectl does: at an = that is not one of two, because an expression can contain ==. The value may
// have quotes.
func splitPath(text string) (expression, value string, hasValue bool, err error) {
	at := -1
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != '=':
		case strings.HasPrefix(text[i:], "=="):
			i++
		case at >= 0:
			return "", "", false, errors.New("must have the form jsonpath=EXPRESSION or jsonpath=EXPRESSION=VALUE")
		default:
			at = i
		}
	}
	if at < 0 {
		return text, "", false, nil
	}
	if value = strings.TrimSpace(strings.Trim(text[at+1:], `'"`)); value == "" {
		return "", "", false, errors.New("must have a value after the equals sign, such as jsonpath={.status.phase}=Running")
	}
	return text[:at], value, true, nil
}
