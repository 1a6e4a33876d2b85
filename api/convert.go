package api

import (
	"math"
	"time"

	"github.com/podstead/podstead/supervisor"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// podOf converts a snapshot to the structure that kubectl prints.
func podOf(s *supervisor.Snapshot, hostIPs []lifecycle.PodIP) Pod {
	p := Pod{
		Kind: "Pod", APIVersion: "v1",
		Metadata: Metadata{
			Name: s.Pod.Name, Namespace: "default", UID: s.Facts.UID, Labels: s.Pod.Labels, Annotations: s.Pod.Annotations,
			CreationTimestamp: seconds(s.Facts.Accepted.Wall),
		},
		Spec: PodSpec{Pod: *s.Pod},
		Status: PodStatus{
			Status: s.Status, HostIPs: hostIPs, Owner: s.Owner.String(), StoppedBy: s.Facts.Stop.By, Pulling: s.Pulling,
			AtRest: s.AtRest, NotDurable: s.NotDurable,
		},
	}
	if len(hostIPs) > 0 {
		p.Status.HostIP = hostIPs[0].IP
	}
	if stop := &s.Facts.Stop; stop.ByUser {
		end, grace := seconds(stop.Deadline.Wall), int64(math.Ceil(stop.Grace.Seconds()))
		p.Metadata.DeletionTimestamp, p.Metadata.DeletionGracePeriodSeconds = &end, &grace
	}
	return p
}

// seconds returns a time with the precision of metav1.Time.
func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
