package podfiles

import (
	"maps"
	"testing"
	"time"
)

// TestCarriedOut: a daemon that waits for the first listing knows the pods, also if the file of another pod is invalid.
func TestCarriedOut(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"pods": {"a": podText("one"), "b": podText("two")}, "no pods": {}, "invalid": {"a": podText("one"), "b": "image ="},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			for pod, text := range files {
				b.write(pod+".toml", text)
			}
			b.run()
			select {
			case <-b.set.CarriedOut():
			case <-time.After(testTimeout):
				t.Fatal("the first listing was not carried out")
			}
			want := map[string]map[string]string{"pods": {"a": "one", "b": "two"}, "invalid": {"a": "one"}}[name]
			if got := b.images(); !maps.Equal(got, want) {
				t.Errorf("pods %v, want %v", got, want)
			}
		})
	}
}
