package runtime

import (
	"errors"
	"fmt"

	"github.com/podstead/podstead/runtime/netns"
	"github.com/podstead/podstead/runtime/network"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Admit returns why a pod cannot run on this machine, as [lifecycle.Refusal]s that are joined; nil if it can. It changes
// nothing, and holds nothing for the pod.
func (r *Runtime) Admit(pod *spec.Pod) error {
	refused := append(r.admitPorts(pod), r.admitUsers(pod))
	for _, refusal := range r.machine.CheckResources(pod) {
		refused = append(refused, refusal)
	}
	return errors.Join(refused...)
}

// admitPorts refuses host ports that a process of the machine has. A port that a pod has is no reason here: that pod may be
// about to end, which the supervisor knows, and this one waits for its ports until it has.
func (r *Runtime) admitPorts(pod *spec.Pod) []error {
	request := networkRequest("new", pod, netns.Pins{Network: "new"})
	if pod.HostNetwork {
		request.NetnsPath = ""
	}
	var refused []error
	i := 0
	for field := range pod.HostPortFields() {
		one := request
		one.Ports = request.Ports[i : i+1]
		i++
		if err := r.admitPort(field, one, pod.HostNetwork); err != nil {
			refused = append(refused, err)
		}
	}
	return refused
}

// admitPort refuses the one port of a request.
func (r *Runtime) admitPort(field string, request network.Request, host bool) error {
	refusal := lifecycle.Refusal{Reason: lifecycle.ReasonNodePorts, Field: field, Cause: errNoHostPorts}
	if r.opts.NetworkMode == NetworkNone && !host {
		refusal.Message = errNoHostPorts.Error()
		refusal.Hint = `set mode = "bridge" of [network] in podstead.toml and restart the daemon, or hostNetwork in the pod`
		return refusal
	}
	err := r.network.Check(request)
	if err == nil {
		return nil
	}
	refusal.Message, refusal.Cause = err.Error(), err
	if taken, is := errors.AsType[*network.ConflictError](err); is {
		switch {
		case taken.Holder != "":
			return nil
		case taken.PID != 0:
			refusal.Hint = fmt.Sprintf("take another host port, or end process %d (%s)", taken.PID, taken.Process)
		default:
			refusal.Hint = "take another host port, or end the process that listens there: ss -lnp tells it"
		}
	}
	return refusal
}
