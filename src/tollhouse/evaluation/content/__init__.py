"""Contents for the judge: rendering of requests and answers, and their windows."""
