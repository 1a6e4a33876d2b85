package spec_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/spec"
)

// TestWaitCycles reads pods as "a>b,c": pod a waits for pods b and c.
func TestWaitCycles(t *testing.T) {
	pods := func(text string) (list []*spec.Pod) {
		for field := range strings.FieldsSeq(text) {
			name, waits, _ := strings.Cut(field, ">")
			p := &spec.Pod{Name: name}
			for other := range strings.SplitSeq(waits, ",") {
				if other != "" {
					p.WaitFor = append(p.WaitFor, "pod:"+other+":ready")
				}
			}
			list = append(list, p)
		}
		return list
	}
	for _, test := range []struct {
		name, pods, others string
		want               []string
	}{
		{"chain", "a>b b>c c", "", nil},
		{"diamond", "a>b,c b>d c>d d", "", nil},
		{"two pods", "a>b b>a", "", []string{"a b a"}},
		{"three pods, in another order", "c>a a>b b>c", "", []string{"c a b c"}},
		{"two cycles", "a>b b>a c>d d>c e>a", "", []string{"a b a", "c d c"}},
		{"cycles with a common pod", "a>b b>a,c c>b", "", []string{"a b a", "c b c"}},
		{"with a pod of the host", "a>b", "b>a", []string{"a b a"}},
		{"through pods of the host", "a>b", "b>c c>a", []string{"a b c a"}},
		{"a pod of the host is replaced", "a>b b", "b>a", nil},
		{"pods of the host only", "a", "b>c c>b", nil},
		{"behind a cycle", "a>b", "b>c c>b", nil},
		{"a pod that is not there", "a>b", "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, cycle := range spec.WaitCycles(pods(test.pods), pods(test.others)) {
				got = append(got, strings.Join(cycle, " "))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
