package supervisor

import (
	"github.com/podstead/podstead/supervisor/emit"
	"github.com/podstead/podstead/supervisor/event"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// recordPull records the progress of a pull, and emits the event of its beginning. Each import of an image archive before the pull has an
// event of its own.
func recordPull(pulling map[string]lifecycle.Progress, m pullProgress, at emit.Emission) {
	if m.progress.MissingSecrets != "" {
		at.Emit(event.PullSecretsMissing, m.container, event.Fields{"secrets": m.progress.MissingSecrets})
		m.progress.MissingSecrets = ""
	}
	before, known := pulling[m.container]
	pulling[m.container] = m.progress
	if known && before.Archive == m.progress.Archive {
		return
	}
	if m.progress.Archive != "" {
		at.Emit(event.ImageImporting, m.container, event.Fields{"archive": m.progress.Archive})
		return
	}
	at.Emit(event.ImagePulling, m.container, event.Fields{"image": at.Image(m.container)})
}
