package server

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/atlas-inference/atlas/atlasrt/internal/api"
)

// route is one path and method.
type route struct {
	method, path string
	open         bool // needs no key
	probe        bool // of load balancers: under any name of a host
	handle       func(*Server, *gin.Context)
}

// table is every route that there is.
func table() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{post, "/v1/chat/completions", false, false, (*Server).chat},
		{post, "/v1/completions", false, false, (*Server).text},
		{get, "/v1/models", false, false, (*Server).listModels},
		{get, "/v1/models/*id", false, false, (*Server).showModel},
		{post, "/chat/completions", false, false, (*Server).chat},
		{post, "/completions", false, false, (*Server).text},
		{get, "/models", false, false, (*Server).listModels},
		{get, "/models/*id", false, false, (*Server).showModel},
		{post, "/tokenize", false, false, (*Server).tokenize},
		{post, "/detokenize", false, false, (*Server).detokenize},
		{get, "/health", true, true, (*Server).ready},
		{get, "/readyz", true, true, (*Server).ready},
		{get, "/ready", true, true, (*Server).ready},
		{get, "/livez", true, true, (*Server).live},
		{get, "/live", true, true, (*Server).live},
		{get, "/metrics", false, false, (*Server).scrape},
		{get, "/version", false, false, (*Server).version},
		{get, "/", true, false, (*Server).index},
	}
}

func (s *Server) routes() *gin.Engine {
	gin.SetMode(gin.ReleaseMode) // else gin prints to stdout
	router := gin.New()
	router.HandleMethodNotAllowed = true
	router.RedirectTrailingSlash = false
	router.ForwardedByClientIP = false
	open, probe := map[string]bool{}, map[string]bool{}
	for _, r := range table() {
		open[r.path], probe[r.path] = r.open, r.probe
	}
	router.Use(s.identify, s.observe, s.recover, s.checkHost(probe), s.crossOrigin, s.authorize(open))
	for _, r := range table() {
		router.Handle(r.method, r.path, func(c *gin.Context) { r.handle(s, c) })
		if r.method == http.MethodGet {
			router.Handle(http.MethodHead, r.path, func(c *gin.Context) { r.handle(s, c) })
		}
	}
	router.NoRoute(s.notFound)
	router.NoMethod(func(c *gin.Context) {
		s.fail(c, &api.Error{Status: 405, Type: api.TypeInvalid, Code: "method_not_allowed",
			Message: "This path does not take that method; the Allow header lists those that it takes."})
	})
	return router
}

// nowhere is a path that no route has.
const nowhere = "/."

// maxPathBytes bounds paths; model names are far shorter.
const maxPathBytes = 1024

// ServeHTTP implements http.Handler. Slashes that repeat or end a path do not matter; paths with dots, or with bytes that
// no path here has, lead nowhere.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	url := *r.URL
	url.Path, url.RawPath = plainPath(r.URL.Path), ""
	r.URL = &url
	s.router.ServeHTTP(w, r)
}

func plainPath(path string) string {
	if len(path) > maxPathBytes || strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nowhere
	}
	var b strings.Builder
	for segment := range strings.SplitSeq(path, "/") {
		switch segment {
		case "":
		case ".", "..":
			return nowhere
		default:
			b.WriteByte('/')
			b.WriteString(segment)
		}
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}
