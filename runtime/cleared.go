package runtime

import (
	"sync"

	"github.com/podstead/podstead/runtime/cgroup/podcgroup"
)

// clearings reports what was killed and removed in the cgroups of pods. It is safe for concurrent use.
type clearings struct {
	mu     sync.Mutex
	early  []func() // before there is a receiver
	report func(uid string, cleared podcgroup.Cleared)
}

func (c *clearings) add(uid string, cleared podcgroup.Cleared) {
	if !cleared.Any() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.report == nil {
		c.early = append(c.early, func() { c.report(uid, cleared) })
		return
	}
	c.report(uid, cleared)
}

// receive sets the receiver. It is called at once with what was added before.
func (c *clearings) receive(report func(uid string, cleared podcgroup.Cleared)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report = report
	for _, tell := range c.early {
		tell()
	}
	c.early = nil
}
