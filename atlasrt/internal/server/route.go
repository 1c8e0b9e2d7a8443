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
	handle       func(*Server, *gin.Context)
}

// table is every route that there is.
func table() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{post, "/v1/chat/completions", false, (*Server).chat},
		{post, "/v1/completions", false, (*Server).text},
		{get, "/v1/models", false, (*Server).listModels},
		{get, "/v1/models/*id", false, (*Server).showModel},
		{post, "/tokenize", false, (*Server).tokenize},
		{post, "/detokenize", false, (*Server).detokenize},
		{get, "/health", true, (*Server).ready},
		{get, "/readyz", true, (*Server).ready},
		{get, "/ready", true, (*Server).ready},
		{get, "/livez", true, (*Server).live},
		{get, "/live", true, (*Server).live},
		{get, "/metrics", false, (*Server).scrape},
		{get, "/version", false, (*Server).version},
	}
}

func (s *Server) routes() *gin.Engine {
	gin.SetMode(gin.ReleaseMode) // else gin prints to stdout
	router := gin.New()
	router.HandleMethodNotAllowed = true
	router.RedirectTrailingSlash = false
	router.ForwardedByClientIP = false
	open := map[string]bool{}
	for _, r := range table() {
		open[r.path] = r.open
	}
	router.Use(s.identify, s.observe, s.recover, s.checkHost, s.authorize(open))
	for _, r := range table() {
		router.Handle(r.method, r.path, func(c *gin.Context) { r.handle(s, c) })
		if r.method == http.MethodGet {
			router.Handle(http.MethodHead, r.path, func(c *gin.Context) { r.handle(s, c) })
		}
	}
	router.NoRoute(func(c *gin.Context) {
		s.fail(c, &api.Error{Status: 404, Type: api.TypeInvalid, Code: "not_found", Message: "There is no such path here."})
	})
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
