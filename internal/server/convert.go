package server

import (
	"math"
	"os"
	"slices"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// PodOf returns a pod as the API shows it, without the addresses of the host.
func PodOf(s *supervisor.Snapshot) api.Pod { return podOf(s, nil) }

// podOf converts a snapshot to the structure that kubectl prints.
func podOf(s *supervisor.Snapshot, hostIPs []api.PodIP) api.Pod {
	p := api.Pod{
		Kind: "Pod", APIVersion: "v1",
		Metadata: api.Metadata{
			Name: s.Pod.Name, Namespace: "default", UID: s.Facts.UID, Labels: s.Pod.Labels, Annotations: s.Pod.Annotations,
			Generation:        s.Facts.Generation(),
			CreationTimestamp: seconds(s.Facts.Accepted.Wall),
		},
		Spec:   api.PodSpec{Pod: withPullPolicies(s.Pod, &s.Facts), NodeName: nodeName()},
		Status: statusOf(&s.Status),
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; s.Facts.Conditions[lifecycle.ConditionType(c.Type)].Status == "" {
			c.ObservedGeneration = p.Status.ObservedGeneration
		}
	}
	p.Status.HostIPs, p.Status.Owner, p.Status.StoppedBy, p.Status.StoppedAt = hostIPs, s.Owner.String(), s.Facts.Stop.By, stoppedAt(s)
	p.Status.File, p.Status.Pulling, p.Status.AtRest, p.Status.NotDurable = s.Owner.File, pullingOf(s.Pulling), s.AtRest, s.NotDurable
	p.Status.Outcome = outcomeOf(s)
	if len(hostIPs) > 0 {
		p.Status.HostIP = hostIPs[0].IP
	}
	if stop := &s.Facts.Stop; stop.ByUser {
		end, grace := seconds(stop.Deadline.Wall), int64(math.Ceil(stop.Grace.Seconds()))
		p.Metadata.DeletionTimestamp, p.Metadata.DeletionGracePeriodSeconds = &end, &grace
	}
	return p
}

// withPullPolicies returns a pod with the pull policies that are used where it sets none. Whether an image is one of an archive is known
// when the container has it: until then, the policy of an image with the tag latest is not known if the pod has archives.
func withPullPolicies(pod *spec.Pod, f *lifecycle.Facts) spec.Pod {
	p := *pod
	p.CloneContainers()
	for c := range p.EveryContainer() {
		image := f.Container(c.Name).Image
		policy := spec.DefaultPullPolicy(c.Image, image.Archive)
		if c.ImagePullPolicy == "" && (policy != spec.PullAlways || image.ID != "" || len(pod.ArchivesOf(c)) == 0) {
			c.ImagePullPolicy = policy
		}
	}
	p.Volumes = slices.Clone(p.Volumes)
	for i := range p.Volumes {
		v := &p.Volumes[i]
		if v.Image != nil && v.Image.PullPolicy == "" && spec.DefaultPullPolicy(v.Image.Reference, false) == spec.PullIfNotPresent {
			image := *v.Image
			image.PullPolicy, v.Image = spec.PullIfNotPresent, &image
		}
	}
	return p
}

// outcomeOf converts what became of the newest request. What is going to be rolled back has not failed yet: how that ends is said then.
func outcomeOf(s *supervisor.Snapshot) api.RequestOutcome {
	o := api.RequestOutcome{State: api.RolloutState(s.Outcome.State), Message: s.Outcome.Message, Request: s.Facts.Trial.N}
	if s.Facts.Trial.Holds() {
		o.State = api.RolloutProgressing
	}
	return o
}

// nodeName returns the host name of the host, which can change; empty: it cannot be read.
func nodeName() string {
	name, _ := os.Hostname()
	return name
}

// stoppedAt returns when a client requested the stop of a pod that is stopped. It is zero if the pod runs or is being deleted, or if it had
// completed or failed before.
func stoppedAt(s *supervisor.Snapshot) time.Time {
	if !s.Stopped() {
		return time.Time{}
	}
	return seconds(s.Facts.Stop.Requested.Wall)
}

// seconds returns a time with the precision of metav1.Time.
func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
