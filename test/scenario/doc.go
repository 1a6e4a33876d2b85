// Package scenario uses pods as their owners do: many at once, with a network, host ports, volumes, config and secrets, through
// the real program. What must hold: everything arrives in the container, follows its source where it should, is hidden where it
// must be, and is gone without a trace afterwards.
//
// Its tests need root. They run in a network namespace of their own, and nothing of them reaches the machine's network.
package scenario
