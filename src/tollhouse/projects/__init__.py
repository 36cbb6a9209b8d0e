"""Projects. Keys belong to a project; costs and policies are scoped by project."""
