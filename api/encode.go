package api

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podstead/podstead/spec"
)

// plainPod is a [Pod] with the encoding of its fields.
type plainPod Pod

// MarshalJSON writes a manifest that "podstead run" accepts. Annotations have what the Pod API has no fields for, see
// [spec.OwnAnnotations].
func (p Pod) MarshalJSON() ([]byte, error) {
	own := map[string]string{}
	set := func(key, value string) {
		if value != "" {
			own[key] = value
		}
	}
	set(spec.AnnotationSpecHash, p.Spec.Hash)
	set(spec.AnnotationOwner, p.Status.Owner)
	set(spec.AnnotationStoppedBy, p.Status.StoppedBy)
	set(spec.AnnotationFile, p.Status.File)
	if !p.Status.StoppedAt.IsZero() {
		set(spec.AnnotationStoppedAt, p.Status.StoppedAt.Format(time.RFC3339))
	}
	if o := p.Status.Outcome; o.Message != "" {
		set(spec.AnnotationOutcome, string(o.State)+": "+o.Message)
	} else {
		set(spec.AnnotationOutcome, string(o.State))
	}
	if n := p.Status.Outcome.Request; n > 0 {
		set(spec.AnnotationRequest, strconv.Itoa(n))
	}
	if p.Status.AtRest {
		set(spec.AnnotationAtRest, "true")
	}
	if p.Status.NotDurable {
		set(spec.AnnotationNotDurable, "true")
	}
	if len(p.Status.Pulling) > 0 {
		text, err := json.Marshal(p.Status.Pulling)
		if err != nil {
			return nil, err
		}
		set(spec.AnnotationPulling, string(text))
	}
	p.Metadata.Annotations = withoutOwn(p.Metadata.Annotations)
	if len(own) > 0 {
		maps.Copy(own, p.Metadata.Annotations)
		p.Metadata.Annotations = own
	}
	p.Spec.Pod = manifestOf(&p.Spec.Pod)
	return json.Marshal(plainPod(p))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Pod) UnmarshalJSON(text []byte) error {
	var read plainPod
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	own := read.Metadata.Annotations
	read.Metadata.Annotations = withoutOwn(own)
	read.Spec.Hash = own[spec.AnnotationSpecHash]
	read.Status.Owner = own[spec.AnnotationOwner]
	read.Status.StoppedBy = own[spec.AnnotationStoppedBy]
	read.Status.File = own[spec.AnnotationFile]
	if at := own[spec.AnnotationStoppedAt]; at != "" {
		var err error
		if read.Status.StoppedAt, err = time.Parse(time.RFC3339, at); err != nil {
			return err
		}
	}
	state, message, _ := strings.Cut(own[spec.AnnotationOutcome], ": ")
	read.Status.Outcome = RequestOutcome{State: RolloutState(state), Message: message}
	if n := own[spec.AnnotationRequest]; n != "" {
		var err error
		if read.Status.Outcome.Request, err = strconv.Atoi(n); err != nil {
			return err
		}
	}
	read.Status.AtRest = own[spec.AnnotationAtRest] == "true"
	read.Status.NotDurable = own[spec.AnnotationNotDurable] == "true"
	if pulling := own[spec.AnnotationPulling]; pulling != "" {
		if err := json.Unmarshal([]byte(pulling), &read.Status.Pulling); err != nil {
			return err
		}
	}
	*p = Pod(read)
	return nil
}

func withoutOwn(annotations map[string]string) map[string]string {
	all := len(annotations)
	annotations = maps.Clone(annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool { return slices.Contains(spec.OwnAnnotations, key) })
	if all > 0 && len(annotations) == 0 {
		return nil
	}
	return annotations
}

// hasStopSignal reports whether a container sets a stop signal, for which a manifest must name the operating system.
func hasStopSignal(p *spec.Pod) bool {
	return slices.ContainsFunc(slices.Concat(p.InitContainers, p.Containers), func(c spec.Container) bool {
		return c.Lifecycle != nil && c.Lifecycle.StopSignal != ""
	})
}

// manifestOf returns a copy of a pod without fields that a manifest cannot have. The data of a config map includes that of its env file.
// The values of a secret with an env file are in that file.
func manifestOf(p *spec.Pod) spec.Pod {
	m := *p
	m.Hash = ""
	if m.OS == nil && hasStopSignal(p) {
		m.OS = &spec.PodOS{Name: spec.Linux}
	}
	m.CloneContainers()
	for c := range m.EveryContainer() {
		c.Hash = ""
	}
	m.ConfigMaps, m.Secrets = slices.Clone(m.ConfigMaps), slices.Clone(m.Secrets)
	for i := range m.ConfigMaps {
		m.ConfigMaps[i].EnvFile = ""
	}
	for i := range m.Secrets {
		if m.Secrets[i].EnvFile != "" {
			m.Secrets[i].Data = nil
		}
	}
	return m
}
