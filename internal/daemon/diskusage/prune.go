package diskusage

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/daemon/images"
	"github.com/podstead/podstead/runtime"
	"github.com/podstead/podstead/supervisor/podfiles"
)

// collectTimeout bounds the wait for the removal of what a finished pod has left.
const collectTimeout = time.Minute

// pruning is one removal of what nothing uses.
type pruning struct {
	*System
	survey
	api.SystemPrune
	done api.SystemPruned
}

func (p *pruning) add(kind, name string, bytes int64) {
	p.done.Items = append(p.done.Items, api.PrunedItem{Type: kind, Name: name, Bytes: bytes})
	p.done.Freed += bytes
}

// Prune implements [server.System].
func (s *System) Prune(ctx context.Context, q api.SystemPrune) (api.SystemPruned, error) {
	v, err := s.survey(ctx, q.Volumes)
	if err != nil {
		return api.SystemPruned{}, failure("prune", err)
	}
	p := &pruning{System: s, survey: v, SystemPrune: q}
	if q.Volumes && v.unknown != nil {
		return p.done, refusal(v.unknown)
	}
	for _, step := range []func(context.Context) error{p.pods, p.images, p.content, p.persistent} {
		if err := step(ctx); err != nil {
			return p.done, failure("prune", err)
		}
	}
	return p.done, nil
}

// refusal returns the response if the users of volumes are not known.
func refusal(unknown *podfiles.Unknown) error {
	return &api.Error{
		Status: http.StatusConflict, Message: "prune persistent volumes: the volumes that pods use are not known: " + unknown.Cause,
		Hint: unknown.Hint,
	}
}

// pods removes what finished pods have left. The end of their logs remains.
func (p *pruning) pods(ctx context.Context) error {
	before := map[int]string{} // UIDs by the index of the item
	for n := range p.finished {
		f := &p.finished[n]
		if f.For < p.OlderThan {
			continue
		}
		if !p.DryRun {
			limited, cancel := context.WithTimeoutCause(ctx, collectTimeout, fmt.Errorf("timed out after %v", collectTimeout))
			err := p.Pods.CollectFinished(limited, f)
			cancel()
			if err != nil {
				return fmt.Errorf("remove what pod %q has left: %w", f.Pod.Name, err)
			}
		}
		before[len(p.done.Items)] = f.Facts.UID
		p.add("pod", f.Pod.Name, left(&p.survey.DiskUsage, f.Facts.UID))
	}
	if p.DryRun || len(before) == 0 {
		return nil
	}
	now, err := p.Disk.DiskUsage(ctx)
	if err != nil {
		return err
	}
	for n, uid := range before {
		remains := min(left(&now, uid), p.done.Items[n].Bytes)
		p.done.Items[n].Bytes -= remains
		p.done.Freed -= remains
	}
	return nil
}

// left returns the size of what a finished pod has left.
func left(u *runtime.DiskUsage, uid string) int64 {
	bytes := u.Logs[uid] + u.PodVolumes[uid]
	for _, c := range u.Containers {
		if c.UID == uid {
			bytes += c.Size
		}
	}
	return bytes
}

// images removes the images that nothing uses.
func (p *pruning) images(ctx context.Context) error {
	ages, parts := p.Ages.Unused(), p.partition()
	facts := &p.survey.images
	for n := range facts.Images {
		facts.Images[n].Unused = ages[facts.Images[n].ID] // zero if it is not known
	}
	rule := images.Rule{Respect: images.Collection, Unused: p.OlderThan, Low: 100}
	if p.All {
		rule.Respect = images.CollectionAll
	}
	removable := make([]bool, len(facts.Images))
	for _, r := range images.Keep(facts, rule) {
		removable[r.Image] = true
	}
	for n := range facts.Images {
		if !removable[n] {
			continue
		}
		w := &facts.Images[n]
		name := strings.Join(w.Names, ", ")
		if p.DryRun {
			// With the images before it: the last of those that share a layer frees it.
			before := p.both(parts, func(other int) bool { return removable[other] && other < n })
			p.add("image", name, p.both(parts, func(other int) bool { return removable[other] && other <= n })-before)
			continue
		}
		removed, freed, err := p.Images.Discard(ctx, w.ID, rule.Respect)
		if err != nil {
			return fmt.Errorf("remove image %s: %w", name, err)
		}
		if removed {
			p.add("image", name, freed)
		}
	}
	return nil
}

func (p *pruning) both(parts []part, remove func(n int) bool) int64 {
	blobs, layers := p.freed(parts, remove)
	return blobs + layers
}

// content deletes blobs and layers that nothing refers to.
func (p *pruning) content(ctx context.Context) error {
	if p.DryRun {
		return nil
	}
	freed, err := p.Images.Sweep(ctx)
	if err == nil && freed > 0 {
		p.add("content", "", freed)
	}
	return err
}

// persistent removes the persistent volumes that no pod, pod file or generation uses.
func (p *pruning) persistent(ctx context.Context) error {
	if !p.Volumes {
		return nil
	}
	for n := range p.volumes {
		v := &p.volumes[n]
		if len(v.Pods) > 0 {
			continue
		}
		if !p.DryRun {
			removed, err := p.remove(ctx, v.Name)
			if err != nil {
				return err
			}
			if !removed {
				continue
			}
		}
		p.add("volume", v.Name, v.Size)
	}
	return nil
}

// remove removes a persistent volume, unless something uses it by now: a pod file may have been written since the survey.
func (p *pruning) remove(ctx context.Context, name string) (bool, error) {
	list, unknown, err := p.claims(ctx, nil, true)
	if err != nil {
		return false, err
	}
	if unknown != nil {
		return false, refusal(unknown)
	}
	at := slices.IndexFunc(list, func(v api.VolumeUsage) bool { return v.Name == name })
	if at < 0 || len(list[at].Pods) > 0 {
		return false, nil
	}
	if err := p.Pods.RemoveVolume(ctx, name); err != nil {
		return false, err
	}
	return true, nil
}
