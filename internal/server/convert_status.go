package server

import (
	"maps"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/admission"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// The types of the API are converted field by field from those of the supervisor, so that a change of these cannot change the API.
// TestConversions requires that no field of a converted value is lost.

// convert converts a list. As in JSON, nil stays nil, and an empty list stays empty.
func convert[From, To any](list []From, one func(*From) To) []To {
	if list == nil {
		return nil
	}
	out := make([]To, len(list))
	for i := range list {
		out[i] = one(&list[i])
	}
	return out
}

// statusOf converts a status, without the fields that only the API has.
func statusOf(s *lifecycle.Status) api.PodStatus {
	return api.PodStatus{
		Phase: api.Phase(s.Phase), Reason: api.Reason(s.Reason), Message: s.Message, Conditions: convert(s.Conditions, conditionOf),
		PodIP: s.PodIP, PodIPs: convert(s.PodIPs, podIPOf), StartTime: s.StartTime,
		InitContainerStatuses:      convert(s.InitContainerStatuses, containerStatusOf),
		ContainerStatuses:          convert(s.ContainerStatuses, containerStatusOf),
		EphemeralContainerStatuses: convert(s.EphemeralContainerStatuses, containerStatusOf),
		QOSClass:                   s.QOSClass,
		ObservedGeneration:         s.ObservedGeneration,
		AllocatedResources:         s.AllocatedResources,
		Resources:                  (*api.Resources)(s.Resources),
	}
}

func conditionOf(c *lifecycle.Condition) api.Condition {
	return api.Condition{
		Type: api.ConditionType(c.Type), Status: c.Status, Reason: api.Reason(c.Reason), Message: c.Message,
		LastTransitionTime: c.LastTransitionTime,
	}
}

func podIPOf(ip *lifecycle.PodIP) api.PodIP { return api.PodIP{IP: ip.IP} }

func containerStatusOf(s *lifecycle.ContainerStatus) api.ContainerStatus {
	return api.ContainerStatus{
		Name: s.Name, State: stateOf(&s.State), LastState: stateOf(&s.LastState), Ready: s.Ready, RestartCount: s.RestartCount,
		Image: s.Image, ImageID: s.ImageID, ContainerID: s.ContainerID, Started: s.Started,
		AllocatedResources: s.AllocatedResources, Resources: (*api.Resources)(s.Resources),
	}
}

func stateOf(s *lifecycle.State) (state api.ContainerState) {
	if w := s.Waiting; w != nil {
		state.Waiting = &api.Waiting{Reason: api.Reason(w.Reason), Message: w.Message}
	}
	if r := s.Running; r != nil {
		state.Running = &api.Running{StartedAt: r.StartedAt}
	}
	if t := s.Terminated; t != nil {
		state.Terminated = &api.Terminated{
			ExitCode: t.ExitCode, Reason: api.Reason(t.Reason), Message: t.Message, StartedAt: t.StartedAt, FinishedAt: t.FinishedAt,
			ContainerID: t.ContainerID,
		}
	}
	return state
}

// pullingOf converts the progress of pulls, by container.
func pullingOf(pulls map[string]lifecycle.Progress) map[string]api.Progress {
	if pulls == nil {
		return nil
	}
	out := make(map[string]api.Progress, len(pulls))
	for container, p := range pulls {
		out[container] = api.Progress{Archive: p.Archive, Done: p.Done, Total: p.Total, Unpacking: p.Unpacking, Image: p.Image}
	}
	return out
}

func refusalOf(r *lifecycle.Refusal) api.Refusal {
	return api.Refusal{Reason: api.Reason(r.Reason), Field: r.Field, Message: r.Message, Hint: r.Hint}
}

// PolicyOf converts the configuration of admission, for the daemon. The protected directories are not part of the API.
func PolicyOf(p *admission.Policy) *api.Policy {
	return &api.Policy{
		PodSecurity: string(p.PodSecurity), HostPaths: p.HostPaths, Devices: p.Devices, UnsafeSysctls: p.UnsafeSysctls,
		IgnoreRequests: p.IgnoreRequests, SystemReserved: maps.Clone(p.SystemReserved),
	}
}

// eventOf converts an event. The clock readings for the correction of its time are not part of the API.
func eventOf(e *event.Event) api.Event {
	return api.Event{
		Seq: e.Seq, Cause: e.Cause, Time: e.Time, Level: e.Level, Kind: e.Kind, Reason: e.Reason, Pod: e.Pod, UID: e.UID,
		Container: e.Container, Attempt: e.Attempt, Fields: e.Fields, Message: e.Message,
	}
}
