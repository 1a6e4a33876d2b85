package main

import (
	"context"
	"strings"

	"github.com/podstead/podstead/test/internal/rig"
)

// extras measures what the pod network and a volume add to the start of a pod: the same pod with and without them, alternately, each
// with a daemon of its own.
func (b *bench) extras(ctx context.Context, r *report) error {
	return b.within(ctx, func(bare *rig.Rig) error {
		bare.Env = append(bare.Env, "PODSTEAD_NETWORK_MODE=none")
		return b.within(ctx, func(full *rig.Rig) error {
			without, err := b.newStarter(bare)
			if err != nil {
				return err
			}
			defer without.gate.close()
			with, err := b.newStarter(full)
			if err != nil {
				return err
			}
			defer with.gate.close()
			if err := with.addVolume(); err != nil {
				return err
			}
			var first start
			for _, s := range []*starter{without, with} { // imports the images and creates the bridge
				if err := s.run(ctx, &first); err != nil {
					return err
				}
			}
			for range b.times(40) {
				if err := without.run(ctx, &r.without); err != nil {
					return err
				}
				if err := with.run(ctx, &r.with); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// addVolume adds an inline config map and its volume to the starter's pod.
func (s *starter) addVolume() error {
	text := "configMaps = [{ name = \"conf\", data = { key = \"value\" } }]\n" + s.text + `
[[volumes]]
name = "conf"
configMap = { name = "conf" }
`
	var err error
	s.file, err = s.rig.WritePod("hello", strings.Replace(text, `volumeMounts = {`, `volumeMounts = { conf = "/conf",`, 1))
	return err
}
