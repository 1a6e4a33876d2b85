package lifecycle_test

import (
	"testing"
)

func TestDecideEngineUnavailable(t *testing.T) {
	pod := podOf(never, "app")
	decisions{
		{name: "deviation 20 wakes up when the phase becomes Unknown", pod: pod, past: history{up(), running("app", 1), tick(10), engineUnavailable}, now: 20, wake: 20 + 1e-9},
		{name: "deviation 20 does nothing after the phase became Unknown", pod: pod, past: history{up(), running("app", 1), tick(10), engineUnavailable}, now: 20.1},
		{name: "deviation 20 does nothing after the engine is available again", pod: pod, past: history{up(), running("app", 1), tick(10), engineUnavailable, engineAvailable}, now: 15},
		{name: "deviation 20 does not wake up for a terminated pod", pod: pod, past: history{up(), ran("app", 1, 0), sandboxRemoved(1), tick(10), engineUnavailable}, now: 15},
	}.check(t)
}
