// Package ui serves the page of podstead ui: what podstead get, why, top, logs and system df show, in a browser. It is a client of the
// daemon like a command. It keeps nothing, and while no page is open it sends the daemon no request.
//
// # Who gets in
//
// Everything on the host can connect to a loopback address: other users, and pages of other sites in the same browser. Therefore
//
//   - the URL has a random token in its fragment, which browsers do not send. The page exchanges it for a cookie and a key, and removes it
//     from the address. Requests below /api/ need both. Browsers send cookies to all ports of an address: the key, which the page keeps in
//     the storage of its origin, makes a cookie that another port has received useless;
//   - Host must be the address of the server, so that a site whose name was made to resolve to it (DNS rebinding) gets nothing;
//   - Origin, if there is one, must be that of the page, and the exchange of the token requires it;
//   - requests that change something are POST requests and upgrades to a WebSocket, for which Origin is required. They exist only after
//     [Server.AllowActions]. The request of a WebSocket has the key in a subprotocol;
//   - the content security policy allows files of this server only, and no markup from texts (Trusted Types). That of the frame of a
//     terminal also allows inline styles, which xterm.js makes.
package ui
