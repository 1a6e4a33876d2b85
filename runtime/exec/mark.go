package exec

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/podstead/podstead/runtime/proctree"
)

// marks gives each command of this daemon its mark.
type marks struct {
	instance string // distinguishes the commands of this daemon from those of earlier ones
	number   *atomic.Uint64
}

func newMarks() marks { return marks{instance: uuid.NewString()[:8], number: new(atomic.Uint64)} }

func (m marks) next(k kind) mark {
	return mark{instance: m.instance, number: m.number.Add(1), kind: k}
}

// left lists the commands in a cgroup that an earlier daemon has started and that must be killed. runs reports whether the first process of
// a command is running. Only the engine knows that: a program that a command has left as a daemon leads a session as well, and with crun
// the first process does not.
func (m marks) left(cgroup string, runs func(mark) (bool, error)) ([]mark, error) {
	processes, err := proctree.List(cgroup)
	if err != nil {
		return nil, err
	}
	var list []mark
	seen := map[mark]bool{}
	for _, p := range processes {
		found, ok := parseMark(p.Mark)
		if !ok || found.instance == m.instance || seen[found] {
			continue
		}
		seen[found] = true
		running := found.kind == probe
		if !running {
			if running, err = runs(found); err != nil {
				return list, err
			}
		}
		if running {
			list = append(list, found)
		}
	}
	return list, nil
}

// kind is what a command is run for.
type kind string

// The kinds.
const (
	probe    kind = "probe" // has a timeout, which also applies to the processes that it leaves
	hook     kind = "hook"
	attached kind = "session" // of a client
)

// mark identifies a command in the environment of its processes, see [proctree.MarkVariable].
type mark struct {
	instance string
	number   uint64
	kind     kind
}

func (m mark) String() string {
	return m.instance + "-" + strconv.FormatUint(m.number, 10) + "-" + string(m.kind)
}

func (m mark) is(text string) bool { return text == m.String() }

// parseMark is the reverse of [mark.String].
func parseMark(text string) (mark, bool) {
	parts := strings.Split(text, "-")
	if len(parts) != 3 || !slices.Contains([]kind{probe, hook, attached}, kind(parts[2])) {
		return mark{}, false
	}
	number, err := strconv.ParseUint(parts[1], 10, 64)
	m := mark{instance: parts[0], number: number, kind: kind(parts[2])}
	return m, err == nil && m.String() == text
}
