package fakeruntime

import (
	"context"

	"github.com/podstead/podstead/internal/attach"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// Attach calls [Options.Attach].
func (r *Runtime) Attach(ctx context.Context, uid string, ref lifecycle.Ref, request attach.Request) (*attach.Session, error) {
	if r.options.Attach == nil {
		return nil, attach.ErrNoServer
	}
	return r.options.Attach(ctx, uid, ref, request)
}
