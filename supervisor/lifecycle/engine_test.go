package lifecycle_test

import (
	"testing"
)

func TestDecideAway(t *testing.T) {
	pod := podOf(never, "app")
	decisions{
		{name: "DEVIATIONS 20 nothing is done, but to look when the status changes", pod: pod, past: history{up(), running("app", 1), tick(10), engineLost}, now: 20, wake: 20 + 1e-9},
		{name: "DEVIATIONS 20 nor after that", pod: pod, past: history{up(), running("app", 1), tick(10), engineLost}, now: 20.1},
		{name: "DEVIATIONS 20 nor when it is back", pod: pod, past: history{up(), running("app", 1), tick(10), engineLost, engineFound}, now: 15},
		{name: "DEVIATIONS 20 a pod at rest does not care", pod: pod, past: history{up(), ran("app", 1, 0), sandboxRemoved(1), tick(10), engineLost}, now: 15},
	}.check(t)
}
